"""The fused product of a sparse and a dense matrix for the CPU, compiled by numba."""

from typing import Any

import torch
from numba import njit
from torch import Tensor

from dgt.ops.define import FAST, arrays
from dgt.ops.edges.loops import transpose
from dgt.ops.memory import empty
from dgt.ops.sums import uses_blocks
from dgt.system import threads


def csr_matmul(crow: Tensor, col: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    out = empty((crow.numel() - 1, weight.size(1)), weight.dtype)
    threads.run(_product, 1 + values.numel() // 8192, *arrays(crow, col, values, weight, out))
    return out


def csr_matmul_backward(
    crow: Tensor, col: Tensor, values: Tensor, grad: Tensor, in_channels: int
) -> Tensor:
    wide = uses_blocks(grad)
    return csr_matmul_sum(crow, col, values, grad, in_channels, wide).to(grad.dtype)


def csr_matmul_sum(
    crow: Tensor, col: Tensor, values: Tensor, grad: Tensor, in_channels: int, wide: bool = True
) -> Tensor:
    """Returns the gradient of the weight, by default added up in double precision."""
    # Sorted by columns, the product gathers instead of scattering.
    start, row, edge = (torch.from_numpy(x) for x in transpose(*arrays(crow, col), in_channels))
    out = empty((in_channels, grad.size(1)), torch.double if wide else grad.dtype)
    threads.run(_product, 1 + edge.numel() // 8192, *arrays(start, row, values[edge], grad, out))
    return out


@njit(**FAST)
def _product(
    thread: int, threads: int, crow: Any, col: Any, values: Any, weight: Any, out: Any
) -> None:
    N, C = out.shape
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for c in range(C):
            out[i, c] = 0
        for e in range(crow[i], crow[i + 1]):
            j, value = col[e], values[e]
            for c in range(C):
                out[i, c] += value * weight[j, c]
