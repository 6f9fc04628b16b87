"""A linear layer whose gradients do not depend on the number of threads."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from dgt.ops import sums
from dgt.ops.checks import real
from dgt.ops.define import define
from dgt.ops.half import HALF
from dgt.ops.memory import convert, empty

ROWS = 8192
"""Rows of a half-precision input that are converted to single precision at a time."""
FAST_COLUMNS = 16
"""The least number of columns on the right for which MKL's product is fast."""


class Linear(nn.Linear):
    r"""PyTorch's linear layer :math:`\mathbf{x} \mathbf{W}^\top + \mathbf{b}`."""

    def forward(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """Applies the layer and adds ``plus`` in the same pass, in place of the bias."""
        return linear(x, self.weight.t(), self.bias if plus is None else plus)


def linear(x: Tensor, weight: Tensor, added: Tensor | None = None) -> Tensor:
    """Computes ``x @ weight + added``.

    Args:
        x: Shape: ``(N, F)``. Inputs with more dimensions use PyTorch's product.
        weight: Shape: ``(F, C)``.
        added: Bias, shape ``(C,)``, or matrix, shape ``(N, C)`` (default: none).

    Returns:
        Shape: ``(N, C)``.
    """
    if x.dim() != 2:
        return x @ weight if added is None else x @ weight + added
    if is_wide(weight, x):
        return _linear.rounded(x, weight, added)
    return _linear(x, weight, added)


def is_wide(weight: Tensor, x: Tensor) -> bool:
    """Returns whether a weight is in double precision only for its gradient, see
    :meth:`dgt.ops.direct.Operator.rounded`."""
    return weight.dtype == torch.float64 and x.dtype == torch.float32


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Computes ``x + bias``; the gradient of the bias is a sum over blocks of nodes."""
    if is_wide(bias, x) or sums.uses_blocks(x):
        return _AddBias.apply(x, bias)
    return x + bias.to(x.dtype)


class _AddBias(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor) -> Tensor:
        ctx.bounds = sums.current()
        return x + bias.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor]:
        return grads[0], bias_gradient(grads[0], ctx.bounds)


def bias_gradient(grad: Tensor, bounds: sums.Bounds | None) -> Tensor:
    """Computes ``grad.sum(0)``, in double precision if there are several blocks of nodes."""
    return sums.add_up(lambda rows: grad[rows].sum(0), grad, bounds)


def weight_gradient(x: Tensor, grad: Tensor, bounds: sums.Bounds | None = None) -> Tensor:
    """Computes ``x.t() @ grad``, a sum over all nodes, in double precision if there are several
    blocks of nodes, see :mod:`dgt.ops.sums`.

    If the left factor has few columns (5, 6, 7, 9, 10 or 11) and the right one has more, MKL splits
    the sum among its threads, and the last bits depend on their number. The wider factor is
    therefore put on the left. MKL also takes several times as long for few columns on the right as
    for 16, so that zeros are added to them. On the CPU, half precision is converted some rows at a
    time.
    """
    if x.is_cpu and x.dtype in HALF:
        total = torch.zeros(x.size(1), grad.size(1))
        for some, grads in zip(x.split(ROWS), grad.split(ROWS), strict=True):
            total += weight_gradient(some.float(), grads.float())
        return total.to(x.dtype)
    turned = x.size(1) < grad.size(1)
    wide, narrow = (grad, x) if turned else (x, grad)
    total = sums.add_up(lambda rows: _wide_first(wide[rows], narrow[rows]), x, bounds)
    return (total.t() if turned else total).contiguous()


def _wide_first(wide: Tensor, narrow: Tensor) -> Tensor:
    columns = narrow.size(1)
    if wide.is_cpu and 1 < columns < FAST_COLUMNS <= wide.size(1):
        narrow = pad(narrow, (0, FAST_COLUMNS - columns))
    return (wide.t() @ narrow)[:, :columns]


def _plain(x: Tensor, weight: Tensor, added: Tensor | None) -> Tensor:
    return torch.mm(x, weight) if added is None else torch.addmm(added, x, weight)


def _pooled(x: Tensor, weight: Tensor, added: Tensor | None) -> Tensor:
    out = empty((x.size(0), weight.size(1)), x.dtype)
    if x.dtype in HALF:
        return _by_rows(x, weight.float(), added, out)
    if added is None:
        return torch.mm(x, weight, out=out)
    return torch.addmm(added, x, weight, out=out)


def _by_rows(x: Tensor, weight: Tensor, added: Tensor | None, out: Tensor) -> Tensor:
    """Computes the product of a half-precision ``x`` in single precision, some rows at a time."""
    for i in range(0, x.size(0), ROWS):
        rows = slice(i, i + ROWS)
        some = added[rows] if added is not None and added.dim() == 2 else added
        some = None if some is None else some.float()
        out[rows] = _plain(convert(x[rows], torch.float32), weight, some)
    return out


_linear = define(
    "linear",
    _plain,
    fused=_pooled,
    fake=lambda x, weight, added: x.new_empty(x.size(0), weight.size(1)),
    takes={"x": real("N F"), "weight": real("F C"), "added": real("C | N C")},
    autocast=torch.bfloat16,
    half=("plain", "fused"),
)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, added = inputs
    ctx.save_for_backward(x, weight)
    ctx.added = 0 if added is None else added.dim()
    ctx.bounds = sums.current()


def _autograd(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    added = bias_gradient(grad, ctx.bounds) if ctx.added == 1 else grad
    return (
        _linear(grad, weight.to(grad.dtype).t(), None) if ctx.needs_input_grad[0] else None,
        weight_gradient(x, grad, ctx.bounds) if ctx.needs_input_grad[1] else None,
        added if ctx.added else None,
    )


_linear.register_autograd(_autograd, setup_context=_setup_context)
