"""A linear layer whose input may be sparse."""

import math
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from dgt import threads
from dgt.nn.dropout import dropout, dropout_linear
from dgt.nn.linear import linear
from dgt.nn.memory import empty


class SparseLinear(nn.Module):
    r"""The linear layer :math:`\mathbf{X} \mathbf{W} + \mathbf{b}` after dropout of its input,
    which may be a dense tensor or a sparse one in CSR layout.

    A sparse input stays sparse: dropout draws one number for each stored value.

    Args:
        in_channels: Size of each input row.
        out_channels: Size of each output row.
        dropout: Probability that a value of the input is dropped in training.
        bias: Whether there is one.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.dropout = dropout
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = math.sqrt(6 / (self.in_channels + self.out_channels))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        if x.layout == torch.sparse_csr:
            values = dropout(x.values(), self.dropout, self.training)
            out = _csr_matmul(x.crow_indices(), x.col_indices(), values, self.weight)
            return out if self.bias is None else out + self.bias
        dropped = self.training and self.dropout and x.is_cpu
        if dropped and self.bias is not None and not x.requires_grad:
            return dropout_linear(x, self.weight, self.bias, self.dropout)
        x = dropout(x, self.dropout, self.training)
        return linear(x, self.weight, self.bias)

    def __repr__(self) -> str:
        sizes = f"{self.in_channels}, {self.out_channels}"
        return f"{type(self).__name__}({sizes}, dropout={self.dropout})"


def matmul(A: Tensor, x: Tensor) -> Tensor:
    """The product of a sparse CSR matrix, which needs no gradient, or a dense one with a dense
    matrix."""
    if A.layout != torch.sparse_csr:
        return linear(A, x)
    return _csr_matmul(A.crow_indices(), A.col_indices(), A.values(), x)


def _csr_matmul(crow: Tensor, col: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    if values.is_cpu:
        return _matmul(crow, col, values, weight)
    size = (crow.numel() - 1, weight.size(0))
    return torch.sparse_csr_tensor(crow, col, values, size) @ weight


@torch.library.custom_op("dgt::csr_matmul", mutates_args=(), device_types="cpu")
def _matmul(crow: Tensor, col: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    out = empty((crow.numel() - 1, weight.size(1)), weight.dtype)
    arrays = (x.detach().contiguous().numpy() for x in (crow, col, values, weight, out))
    threads.run(_product, 1 + values.numel() // 8192, *arrays)
    return out


@torch.library.custom_op("dgt::csr_matmul_backward", mutates_args=(), device_types="cpu")
def _matmul_backward(
    crow: Tensor, col: Tensor, values: Tensor, grad: Tensor, in_channels: int
) -> Tensor:
    arrays = (x.detach().contiguous().numpy() for x in (crow, col, values))
    transposed = (torch.from_numpy(x) for x in _transpose(*arrays, in_channels))
    return _matmul(*transposed, grad)


@_matmul.register_fake
def _(crow: Tensor, col: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    return weight.new_empty(crow.numel() - 1, weight.size(1))


@_matmul_backward.register_fake
def _(crow: Tensor, col: Tensor, values: Tensor, grad: Tensor, in_channels: int) -> Tensor:
    return grad.new_empty(in_channels, grad.size(1))


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    crow, col, values, weight = inputs
    ctx.save_for_backward(crow, col, values)
    ctx.in_channels = weight.size(0)


def _autograd(ctx: Any, grad: Tensor) -> tuple[None, None, None, Tensor]:
    # The input's values are data or encodings, never learned: they need no gradient.
    return None, None, None, _matmul_backward(*ctx.saved_tensors, grad, ctx.in_channels)


_matmul.register_autograd(_autograd, setup_context=_setup_context)


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy", nogil=True)
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


@njit(cache=True, error_model="numpy", nogil=True)
def _transpose(crow: Any, col: Any, values: Any, columns: int) -> tuple[Any, Any, Any]:
    """The same matrix by columns: the product with it gathers where this one's would scatter."""
    start = np.zeros(columns + 1, np.int64)
    for j in col:
        start[j + 1] += 1
    start = start.cumsum()
    row, by_column, at = np.empty_like(col), np.empty_like(values), start.copy()
    for i in range(len(crow) - 1):
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            row[at[j]], by_column[at[j]] = i, values[e]
            at[j] += 1
    return start, row, by_column
