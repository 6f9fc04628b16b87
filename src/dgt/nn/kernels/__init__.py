"""Deformable attention as one operator, ``torch.ops.dgt.deformable_attention``.

The operator takes and gives what :func:`dgt.nn.interpolation.deformable_attention` does, with the
kernel spelled out as numbers. Its backward pass is an operator too, so that autograd,
``torch.compile`` and ``torch.library.opcheck`` can work with both.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dgt import threads
from dgt.nn.interpolation import Kernel
from dgt.nn.kernels import cpu
from dgt.nn.memory import empty


def deformable_attention(
    values: Tensor, sequences: Tensor, query: Tensor, kernel: Kernel
) -> Tensor:
    """:func:`dgt.nn.interpolation.deformable_attention`, fused; float32 and float64 on the CPU."""
    if sequences.dtype != torch.int32:
        raise TypeError(f"sequences must be of type torch.int32, got {sequences.dtype}")
    bilinear = kernel.interpolation == "bilinear"
    numbers = (kernel.gamma, kernel.epsilon, kernel.normalize)
    return _forward(values, sequences, query, bilinear, *numbers)


@torch.library.custom_op("dgt::deformable_attention", mutates_args=(), device_types="cpu")
def _forward(
    values: Tensor,
    sequences: Tensor,
    query: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
) -> Tensor:
    out = empty(_out_shape(values, query), values.dtype)
    arrays = (_array(x) for x in (values, sequences, query))
    tasks, rest = _arguments(values, query, bilinear, gamma, epsilon, normalize, planes=1)
    if not all(threads.run(cpu.forward, tasks, *arrays, *rest, _array(out).ravel())):
        raise IndexError(f"sequences name a node that is not among the {values.size(0)} values")
    return out


@torch.library.custom_op("dgt::deformable_attention_backward", mutates_args=(), device_types="cpu")
def _backward(
    grad: Tensor,
    values: Tensor,
    sequences: Tensor,
    query: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
) -> tuple[Tensor, Tensor]:
    grads = [empty(x.shape, x.dtype) for x in (values, query)]
    arrays = (_array(x) for x in (values, sequences, query))
    tasks, rest = _arguments(values, query, bilinear, gamma, epsilon, normalize, planes=2)
    outs = (_array(x) for x in grads)
    threads.run(cpu.backward, tasks, *arrays, *rest, _array(grad).ravel(), *outs)
    return grads[0], grads[1]


def _out_shape(values: Tensor, query: Tensor) -> tuple[int, ...]:
    Q, _, T, M, _ = query.shape
    return Q, T, M, values.size(3)


def _arguments(
    values: Tensor,
    query: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
    planes: int,
) -> tuple[int, tuple[Any, ...]]:
    """The number of tasks, and what both passes take between the inputs and the outputs."""
    N, T, M, D = values.shape
    K = query.size(4)
    real: Any = np.dtype(str(values.dtype).removeprefix("torch.")).type
    half_width = 1.0 if bilinear else epsilon
    W = 2 * math.ceil(half_width)
    kernel = (bilinear, real(gamma), real(half_width), normalize)
    room = empty((threads.count(T * M), planes, N, D), values.dtype).numpy()
    return T * M, (*kernel, *((0,) * n for n in (D, W, 2 * K, K * W)), room)


def _array(x: Tensor) -> np.ndarray:
    return x.detach().contiguous().numpy()


@_forward.register_fake
def _(values: Tensor, sequences: Tensor, query: Tensor, *_: Any) -> Tensor:
    return values.new_empty(_out_shape(values, query))


@_backward.register_fake
def _(
    grad: Tensor, values: Tensor, sequences: Tensor, query: Tensor, *_: Any
) -> tuple[Tensor, Tensor]:
    return values.new_empty(values.shape), query.new_empty(query.shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:3])
    ctx.kernel = inputs[3:]


def _autograd(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    values, query = _backward(grad, *ctx.saved_tensors, *ctx.kernel)
    return values, None, query, None, None, None, None


_forward.register_autograd(_autograd, setup_context=_setup_context)
