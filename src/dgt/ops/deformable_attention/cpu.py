"""Fused deformable attention for the CPU: runs the loops of ``loops`` on all threads."""

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dgt.ops import sums
from dgt.ops.define import arrays
from dgt.ops.deformable_attention import loops
from dgt.ops.entries import find_wrong_sequences
from dgt.ops.half import HALF
from dgt.ops.memory import convert, empty
from dgt.system import threads

SIZE_LIMIT = 1000
"""Numba compiles no longer tuples, and sizes are passed as tuples."""


def fits(values: Tensor, query: Tensor, bilinear: bool, epsilon: float) -> bool:
    """Returns whether the loops can be compiled for these sizes."""
    D, K, W = values.size(3), query.size(4), 2 * math.ceil(1.0 if bilinear else epsilon)
    return max(D, 2 * K, K * W) < SIZE_LIMIT


def forward(
    values: Tensor,
    sequences: Tensor,
    query: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
) -> Tensor:
    out = empty(out_shape(values, query), values.dtype)
    if values.dtype in HALF:
        for at, (part,), some, of_heads in _by_heads(query, sequences, values):
            out[at] = forward(part, some, of_heads, bilinear, gamma, epsilon, normalize)
        return out
    inputs = arrays(values, sequences, query)
    tasks, rest = loop_arguments(values, query, bilinear, gamma, epsilon, normalize)
    fine = threads.run(loops.forward, tasks, *inputs, *rest, out.numpy().ravel())
    check_found(fine, "deformable_attention", values, sequences)
    return out


def backward(
    grad: Tensor,
    values: Tensor,
    sequences: Tensor,
    query: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
    *,
    wide: bool = False,
) -> tuple[Tensor, Tensor]:
    """Returns the gradients of values and queries; if ``wide``, the former in double precision."""
    kinds = (values, torch.double if wide else values.dtype), (query, query.dtype)
    grads = [empty(x.shape, kind) for x, kind in kinds]
    if values.dtype in HALF:
        for at, (of_out, part), some, of_heads in _by_heads(query, sequences, grad, values):
            found = backward(of_out, part, some, of_heads, bilinear, gamma, epsilon, normalize)
            grads[0][at], grads[1][:, :, *at[1:]] = found
        return grads[0], grads[1]
    upstream, *inputs = arrays(grad, values, sequences, query)
    tasks, rest = loop_arguments(values, query, bilinear, gamma, epsilon, normalize)
    outs = arrays(*grads)
    totals = room_for_sums(values, query, wide)
    fine = threads.run(loops.backward, tasks, *inputs, *rest, totals, upstream.ravel(), *outs)
    check_found(fine, "deformable_attention_backward", values, sequences)
    return grads[0], grads[1]


def _by_heads(
    query: Tensor, sequences: Tensor, *tensors: Tensor
) -> Iterator[tuple[tuple[slice, ...], list[Tensor], Tensor, Tensor]]:
    """Splits half-precision inputs into as many heads as there are threads, and converts these to
    single precision, so that little memory is needed for it.

    Yields:
        The index of the heads in tensors of shape ``(N, T, M, D)``, these ``tensors`` of the heads,
        and their sequences and queries.
    """
    _, _, T, M, _ = query.shape
    step = threads.count(M)
    for t, m in itertools.product(range(T), range(0, M, step)):
        at = (slice(None), slice(t, t + 1), slice(m, m + step))
        parts = [convert(x[at], torch.float32) for x in tensors]
        yield at, parts, sequences[at[1]], convert(query[:, :, *at[1:]], torch.float32)


def out_shape(values: Tensor, query: Tensor) -> tuple[int, ...]:
    Q, _, T, M, _ = query.shape
    return Q, T, M, values.size(3)


def check_found(fine: list[bool], operator: str, values: Tensor, sequences: Tensor) -> None:
    """Raises a ValueError if a loop found an invalid node index. The operator has checked all
    sequences already, but not again after changes that PyTorch does not track."""
    if not all(fine):
        wrong = find_wrong_sequences(sequences, values.size(0))
        raise ValueError(f"{operator}: sequences: {wrong}")


def loop_arguments(
    values: Tensor,
    query: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
) -> tuple[int, tuple[Any, ...]]:
    """Returns the number of tasks, and the arguments between the inputs and the outputs of a
    loop."""
    N, T, M, D = values.shape
    K = query.size(4)
    real: Any = np.dtype(str(values.dtype).removeprefix("torch.")).type
    half_width = 1.0 if bilinear else epsilon
    W = 2 * math.ceil(half_width)
    kernel = (bilinear, real(gamma), real(half_width), normalize)
    room = empty((threads.count(T * M), N, D), values.dtype).numpy()
    return T * M, (*kernel, *((0,) * n for n in (D, W, K)), room)


def room_for_sums(values: Tensor, query: Tensor, wide: bool) -> np.ndarray:
    """Returns where each thread of a backward pass adds up the gradients of the values of a head.

    As each is a sum over the queries that read a node, those of large graphs are added up in double
    precision, see :mod:`dgt.ops.sums`.
    """
    N, T, M, D = values.shape
    wide = wide or N > sums.BLOCK
    return empty((threads.count(T * M), N, D), torch.double if wide else values.dtype).numpy()
