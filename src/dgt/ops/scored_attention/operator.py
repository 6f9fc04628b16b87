"""Scored attention as the operators ``torch.ops.dgt.scored_attention`` and
``scored_attention_backward``.

They have the inputs and outputs of the functions of the same names in ``reference``, except that
the kernel is passed as numbers.
"""

from typing import Any

import torch
from torch import Tensor

from dgt.ops.checks import ANY, at_least, real
from dgt.ops.define import define
from dgt.ops.deformable_attention.cpu import fits, out_shape
from dgt.ops.deformable_attention.exchanged import Exchange, Exchanged
from dgt.ops.deformable_attention.reference import POSITIVE, Kernel
from dgt.ops.scored_attention import cpu, reference
from dgt.ops.scored_attention.reference import SKIP, TAKES


def scored_attention(
    values: Tensor,
    sequences: Tensor,
    closeness: Tensor,
    query: Tensor,
    probe: Tensor,
    kernel: Kernel,
    skip: int = 0,
    exchange: Exchange | None = None,
) -> Tensor:
    """Computes :func:`reference.scored_attention` in the fastest form for the device.

    With an ``exchange``, the values are those of the nodes that this rank owns.
    """
    bilinear = kernel.interpolation == "bilinear"
    numbers = (kernel.gamma, kernel.epsilon, kernel.normalize)
    inputs = (values, sequences, closeness, query, probe, bilinear, *numbers, skip)
    if exchange is not None:
        return Exchanged.apply(_forward, _wide_backward, exchange, *inputs)
    return _forward(*inputs)


def _plain(
    values: Tensor,
    sequences: Tensor,
    closeness: Tensor,
    query: Tensor,
    probe: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
    skip: int,
) -> Tensor:
    kernel = Kernel("bilinear" if bilinear else "rbf", gamma, epsilon, normalize)
    return reference.scored_attention(values, sequences, closeness, query, probe, kernel, skip)


def _plain_backward(
    grad: Tensor,
    values: Tensor,
    sequences: Tensor,
    closeness: Tensor,
    query: Tensor,
    probe: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
    skip: int,
) -> tuple[Tensor, Tensor, Tensor]:
    kernel = Kernel("bilinear" if bilinear else "rbf", gamma, epsilon, normalize)
    inputs = (values, sequences, closeness, query, probe)
    return reference.scored_attention_backward(grad, *inputs, kernel, skip)


def _fused(*inputs: Any) -> Tensor:
    values, _, _, query, _, bilinear, _, epsilon, _, _ = inputs
    fast = fits(values, query, bilinear, epsilon)
    return (cpu.forward if fast else _plain)(*inputs)


def _fused_backward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    _, values, _, _, query, _, bilinear, _, epsilon, _, _ = inputs
    fast = fits(values, query, bilinear, epsilon)
    return (cpu.backward if fast else _plain_backward)(*inputs)


def _wide_backward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the gradient of values in double precision where possible."""
    _, values, _, _, query, _, bilinear, _, epsilon, _, _ = inputs
    single = values.is_cpu and values.dtype == torch.float32
    if single and fits(values, query, bilinear, epsilon):
        return cpu.backward(*inputs, wide=True)
    return _backward(*inputs)


_takes = {
    **TAKES,
    "bilinear": ANY,
    "gamma": at_least(0.1),
    "epsilon": at_least(1),
    "normalize": ANY,
    "skip": SKIP,
}
_forward = define(
    "scored_attention",
    _plain,
    fused=_fused,
    fake=lambda values, sequences, closeness, query, *_: values.new_empty(out_shape(values, query)),
    takes=_takes,
    positive=POSITIVE,
    autocast=torch.bfloat16,
)
_backward = define(
    "scored_attention_backward",
    _plain_backward,
    fused=_fused_backward,
    fake=lambda grad, values, sequences, closeness, query, probe, *_: tuple(
        x.new_empty(x.shape) for x in (values, query, probe)
    ),
    takes={"grad": real("Q T M D"), **_takes},
    positive=POSITIVE,
)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:5])
    ctx.kernel = inputs[5:]


def _autograd(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    values, query, probe = _backward(grad, *ctx.saved_tensors, *ctx.kernel)
    return values, None, None, query, probe, None, None, None, None, None


_forward.register_autograd(_autograd, setup_context=_setup_context)
