"""A linear layer whose input may be sparse."""

import math
import warnings
from typing import Any, NamedTuple

import torch
from numba import njit
from torch import Tensor, nn

from dgt import threads
from dgt.nn.dropout import dropout, dropout_linear
from dgt.nn.edge_kernels import transpose
from dgt.nn.linear import linear
from dgt.nn.memory import empty


class Rows(NamedTuple):
    """Some rows, one after the other, of a matrix; for dropout, which depends on their place."""

    matrix: Tensor
    """The rows, dense or sparse (CSR)."""
    before: int = 0
    """Number of stored values in the rows before them."""


def take_rows(x: Tensor | Rows, start: int, stop: int) -> Rows:
    """Rows of a dense matrix or a sparse one (CSR), without a copy of their values."""
    x, before = x if isinstance(x, Rows) else (x, 0)
    if x.layout != torch.sparse_csr:
        return Rows(x[start:stop], before + start * x.size(1))
    crow = x.crow_indices()[start : stop + 1]
    entries = slice(int(crow[0]), int(crow[-1]))
    columns, values = x.col_indices()[entries], x.values()[entries]
    return Rows(csr(crow - crow[0], columns, values, x.size(1)), before + entries.start)


def gather_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Any rows of a dense matrix or a sparse one (CSR), as a new one."""
    if x.layout != torch.sparse_csr:
        return x[nodes]
    start = x.crow_indices()[nodes]
    lengths = x.crow_indices()[nodes + 1] - start
    crow = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    at = torch.arange(int(crow[-1])) + (start - crow[:-1]).repeat_interleave(lengths)
    return csr(crow, x.col_indices()[at], x.values()[at], x.size(1))


def csr(crow: Tensor, columns: Tensor, values: Tensor, width: int) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        size = (crow.numel() - 1, width)
        return torch.sparse_csr_tensor(crow, columns, values, size, check_invariants=False)


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

    def forward(self, x: Tensor | Rows) -> Tensor:
        x, before = x if isinstance(x, Rows) else (x, 0)
        if x.layout == torch.sparse_csr:
            values = dropout(x.values(), self.dropout, self.training, start=before)
            out = _csr_matmul(x.crow_indices(), x.col_indices(), values, self.weight)
            return out if self.bias is None else out + self.bias
        dropped = self.training and self.dropout and x.is_cpu
        if dropped and self.bias is not None and not x.requires_grad:
            row = before // max(1, x.size(1))
            return dropout_linear(x, self.weight, self.bias, self.dropout, row)
        x = dropout(x, self.dropout, self.training, start=before)
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
    arrays = (x.detach().contiguous().numpy() for x in (crow, col))
    # By columns: the product gathers where one by rows would scatter.
    start, row, edge = (torch.from_numpy(x) for x in transpose(*arrays, in_channels))
    return _matmul(start, row, values[edge], grad)


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
