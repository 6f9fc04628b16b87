"""Deformable attention as the operators ``torch.ops.dgt.deformable_attention`` and
``deformable_attention_backward``.

They have the inputs and outputs of the functions of the same names in ``reference``, except that
the kernel is passed as numbers.
"""

from typing import Any

import torch
from torch import Tensor

from dgt.ops.checks import ANY, at_least, real
from dgt.ops.define import define
from dgt.ops.deformable_attention import cpu, reference
from dgt.ops.deformable_attention.exchanged import Exchange, Exchanged
from dgt.ops.deformable_attention.reference import POSITIVE, TAKES, Kernel
from dgt.ops.half import in_single


def deformable_attention(
    values: Tensor,
    sequences: Tensor,
    query: Tensor,
    kernel: Kernel,
    exchange: Exchange | None = None,
) -> Tensor:
    """Computes :func:`reference.deformable_attention` in the fastest form for the device.

    With an ``exchange``, the values are those of the nodes that this rank owns.
    """
    bilinear = kernel.interpolation == "bilinear"
    numbers = (kernel.gamma, kernel.epsilon, kernel.normalize)
    inputs = (values, sequences, query, bilinear, *numbers)
    if exchange is not None:
        return Exchanged.apply(_forward, _wide_backward, exchange, *inputs)
    return _forward(*inputs)


def _plain(
    values: Tensor,
    sequences: Tensor,
    query: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
) -> Tensor:
    kernel = Kernel("bilinear" if bilinear else "rbf", gamma, epsilon, normalize)
    return reference.deformable_attention(values, sequences, query, kernel)


def _plain_backward(
    grad: Tensor,
    values: Tensor,
    sequences: Tensor,
    query: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
) -> tuple[Tensor, Tensor]:
    kernel = Kernel("bilinear" if bilinear else "rbf", gamma, epsilon, normalize)
    return reference.deformable_attention_backward(grad, values, sequences, query, kernel)


def _fused(*inputs: Any) -> Tensor:
    values, _, query, bilinear, _, epsilon, _ = inputs
    fits = cpu.fits(values, query, bilinear, epsilon)
    return (cpu.forward if fits else in_single(_plain))(*inputs)


def _fused_backward(*inputs: Any) -> tuple[Tensor, Tensor]:
    _, values, _, query, bilinear, _, epsilon, _ = inputs
    fits = cpu.fits(values, query, bilinear, epsilon)
    return (cpu.backward if fits else in_single(_plain_backward))(*inputs)


def _wide_backward(*inputs: Any) -> tuple[Tensor, Tensor]:
    """Returns the gradient of values in double precision where possible."""
    _, values, _, query, bilinear, _, epsilon, _ = inputs
    single = values.is_cpu and values.dtype == torch.float32
    if single and cpu.fits(values, query, bilinear, epsilon):
        return cpu.backward(*inputs, wide=True)
    return _backward(*inputs)


_takes = {
    **TAKES,
    "bilinear": ANY,
    "gamma": at_least(0.1),
    "epsilon": at_least(1),
    "normalize": ANY,
}
_forward = define(
    "deformable_attention",
    _plain,
    fused=_fused,
    fake=lambda values, sequences, query, *_: values.new_empty(cpu.out_shape(values, query)),
    takes=_takes,
    positive=POSITIVE,
    devices={"cuda": "dgt.ops.deformable_attention.triton:forward"},
    autocast=torch.bfloat16,
    half=("fused",),
)
_backward = define(
    "deformable_attention_backward",
    _plain_backward,
    fused=_fused_backward,
    fake=lambda grad, values, sequences, query, *_: (
        values.new_empty(values.shape),
        query.new_empty(query.shape),
    ),
    takes={"grad": real("Q T M D"), **_takes},
    positive=POSITIVE,
    devices={"cuda": "dgt.ops.deformable_attention.triton:backward"},
    half=("fused",),
)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])
    ctx.kernel = inputs[3:]


def _autograd(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    values, query = _backward(grad, *ctx.saved_tensors, *ctx.kernel)
    return values, None, query, None, None, None, None


_forward.register_autograd(_autograd, setup_context=_setup_context)
