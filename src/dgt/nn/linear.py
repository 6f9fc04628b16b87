"""A linear layer whose gradients have the same bits for any number of threads."""

from typing import Any

import torch
from torch import Tensor, nn

from dgt.nn.memory import empty


class Linear(nn.Linear):
    r"""PyTorch's linear layer :math:`\mathbf{x} \mathbf{W}^\top + \mathbf{b}`."""

    def forward(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """Adds ``plus``, which may be given to a layer without bias, in the same pass."""
        return linear(x, self.weight.t(), self.bias if plus is None else plus)


def linear(x: Tensor, weight: Tensor, added: Tensor | None = None) -> Tensor:
    """``x @ weight + added``; what is added is one row, or a row for each of the output."""
    if x.is_cpu and x.dim() == 2:
        return _linear(x, weight, added)
    return x @ weight if added is None else x @ weight + added


def weight_gradient(x: Tensor, grad: Tensor) -> Tensor:
    """``x.t() @ grad``, a product over all nodes.

    When its left factor has some few columns (5, 6, 7, 9, 10 or 11) and the right one more, MKL
    shares the sum among its threads, and the last bits depend on their number. So the wider factor
    is put to the left.
    """
    return x.t() @ grad if x.size(1) >= grad.size(1) else (grad.t() @ x).t().contiguous()


@torch.library.custom_op("dgt::linear", mutates_args=(), device_types="cpu")
def _linear(x: Tensor, weight: Tensor, added: Tensor | None) -> Tensor:
    out = empty((x.size(0), weight.size(1)), x.dtype)
    if added is None:
        return torch.mm(x, weight, out=out)
    return torch.addmm(added, x, weight, out=out)


@_linear.register_fake
def _(x: Tensor, weight: Tensor, added: Tensor | None) -> Tensor:
    return x.new_empty(x.size(0), weight.size(1))


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, added = inputs
    ctx.save_for_backward(x, weight)
    ctx.added = 0 if added is None else added.dim()


def _autograd(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    return (
        _linear(grad, weight.t(), None) if ctx.needs_input_grad[0] else None,
        weight_gradient(x, grad) if ctx.needs_input_grad[1] else None,
        (None, grad.sum(0), grad)[ctx.added],
    )


_linear.register_autograd(_autograd, setup_context=_setup_context)
