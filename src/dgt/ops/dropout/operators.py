"""Dropout as operators: ``torch.ops.dgt.dropout`` and ``dropout_linear``.

The seed stays on the CPU, whichever device the other tensors are on.
"""

from typing import Any

import torch
from torch import Tensor

from dgt.ops import checks
from dgt.ops.checks import ANY, Takes, number, real
from dgt.ops.define import define
from dgt.ops.dropout import cpu, reference
from dgt.ops.linear import bias_gradient, is_wide

_p = number(0, 1)
# Bounds far above the size of any tensor, below which sums of indices cannot overflow.
_start, _row = number(0, 2**62), number(0, 2**40)
_seeded: dict[str, Takes] = {"seed": checks.seed(), "p": _p}

dropout = define(
    "dropout",
    reference.dropout,
    fused=cpu.dropout,
    fake=lambda x, seed, p, relu, plus, start: x.new_empty(x.shape),
    takes={"x": real("..."), **_seeded, "relu": ANY, "plus": real("..."), "start": _start},
    autocast=torch.bfloat16,
)
relu_dropout_backward = define(
    "relu_dropout_backward",
    reference.relu_dropout_backward,
    fused=cpu.relu_dropout_backward,
    fake=lambda grad, out, p: grad.new_empty(grad.shape),
    takes={"grad": real("..."), "out": real("..."), "p": _p},
)


def draw_seed() -> Tensor:
    """Draws a seed from PyTorch's generator for the CPU."""
    return torch.randint(2**62, (), device="cpu")


@torch.library.custom_op("dgt::dropout_seed", mutates_args=("drawn",))
def _compiled_seed(drawn: Tensor) -> Tensor:
    drawn += 1
    return draw_seed()


@_compiled_seed.register_fake
def _(drawn: Tensor) -> Tensor:
    return torch.empty((), dtype=torch.int64)


_drawn = torch.zeros((), dtype=torch.int64)


def seed() -> Tensor:
    """Draws the same seeds in compiled code, which otherwise has its own random numbers. As the
    operator changes a counter, its calls are neither merged nor reordered."""
    return _compiled_seed(_drawn)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, seed, ctx.p, ctx.relu, plus, ctx.start = inputs
    ctx.added = plus is not None
    if ctx.relu and ctx.added:
        raise ValueError("dropout: relu and plus cannot be combined in training")
    # After ReLU and dropout, the gradient passes where the output is positive.
    ctx.save_for_backward(output if ctx.relu else seed)


def _autograd(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    (saved,) = ctx.saved_tensors
    if ctx.relu:
        grad_x = relu_dropout_backward(grad, saved, ctx.p)
    else:
        grad_x = dropout(grad, saved, ctx.p, False, None, ctx.start)
    return grad_x, None, None, None, grad if ctx.added else None, None


dropout.register_autograd(_autograd, setup_context=_setup)


dropout_linear = define(
    "dropout_linear",
    reference.dropout_linear,
    fused=cpu.dropout_linear,
    fake=lambda x, weight, bias, seed, p, row: x.new_empty(x.size(0), weight.size(1)),
    takes={"x": real("N F"), "weight": real("F C"), "bias": real("C"), **_seeded, "row": _row},
    autocast=torch.bfloat16,
    half=("plain", "fused"),
)
dropout_linear_backward = define(
    "dropout_linear_backward",
    reference.dropout_linear_backward,
    fused=cpu.dropout_linear_backward,
    fake=lambda grad, x, seed, p, row: x.new_empty(x.size(1), grad.size(1)),
    takes={"grad": real("N C"), "x": real("N F"), **_seeded, "row": _row},
    half=("plain", "fused"),
)


def _setup_linear(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, _, seed, ctx.p, ctx.row = inputs
    ctx.save_for_backward(x, seed)
    ctx.wide = is_wide(weight, x)


def _autograd_linear(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    x, seed = ctx.saved_tensors
    sum_up = cpu.sum_dropped if ctx.wide and grad.is_cpu else dropout_linear_backward
    grad_weight = sum_up(grad, x, seed, ctx.p, ctx.row)
    return None, grad_weight, bias_gradient(grad, None), None, None, None


dropout_linear.register_autograd(_autograd_linear, setup_context=_setup_linear)
