"""The fused gradient of softmax for the CPU, compiled by numba."""

from typing import Any

from numba import njit
from torch import Tensor

from dgt.ops.define import FAST, arrays
from dgt.ops.memory import empty
from dgt.system import threads


def softmax_backward(grad: Tensor, out: Tensor) -> Tensor:
    result = empty(tuple(out.shape), out.dtype)
    if not out.numel():
        return result
    rows = [x.reshape(-1, out.size(-1)) for x in arrays(grad, out, result)]
    threads.run(_gradient, 1 + out.numel() // 32768, *rows)
    return result


@njit(**FAST)
def _gradient(thread: int, threads: int, grad: Any, out: Any, result: Any) -> None:
    N, C = out.shape
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        along = out.dtype.type(0)
        for c in range(C):
            along += out[i, c] * grad[i, c]
        for c in range(C):
            result[i, c] = out[i, c] * (grad[i, c] - along)
