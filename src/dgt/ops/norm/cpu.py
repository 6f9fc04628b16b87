"""Fused layer norm for the CPU, compiled by numba."""

from typing import Any

import numpy as np
from numba import njit
from torch import Tensor

from dgt.ops.define import FAST, arrays
from dgt.ops.memory import empty
from dgt.ops.norm.reference import EPS
from dgt.system import threads


def layer_norm(x: Tensor) -> tuple[Tensor, Tensor]:
    out, scale = empty(x.shape, x.dtype), empty((x.size(0),), x.dtype)
    threads.run(_normalize, _tasks(x), *arrays(x, out, scale))
    return out, scale


def layer_norm_backward(grad: Tensor, out: Tensor, scale: Tensor) -> Tensor:
    result = empty(grad.shape, grad.dtype)
    threads.run(_gradient, _tasks(grad), *arrays(grad, out, scale, result))
    return result


def _tasks(x: Tensor) -> int:
    """Returns the number of tasks; small tensors are not worth a second thread."""
    return 1 + x.numel() // 32768


@njit(**FAST)
def _normalize(thread: int, threads: int, x: Any, out: Any, scale: Any) -> None:
    N, C = x.shape
    real = x.dtype.type
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        mean = real(0)
        for c in range(C):
            mean += x[i, c]
        mean /= real(C)
        variance = real(0)
        for c in range(C):
            variance += (x[i, c] - mean) * (x[i, c] - mean)
        by = real(1) / np.sqrt(variance / real(C) + real(EPS))
        scale[i] = by
        for c in range(C):
            out[i, c] = (x[i, c] - mean) * by


@njit(**FAST)
def _gradient(thread: int, threads: int, grad: Any, out: Any, scale: Any, result: Any) -> None:
    N, C = grad.shape
    real = grad.dtype.type
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        mean, along = real(0), real(0)  # of the gradient, and of its product with the output
        for c in range(C):
            mean += grad[i, c]
            along += grad[i, c] * out[i, c]
        mean /= real(C)
        along /= real(C)
        for c in range(C):
            result[i, c] = (grad[i, c] - mean - out[i, c] * along) * scale[i]
