"""Selection of rows of dense or sparse (CSR) matrices."""

import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from dgt.ops.checks import check_all, index, size

ROWS_TAKES = {"rows": size("N"), "nodes": index("Q", below="N")}
"""What functions take that select rows ``nodes`` of a matrix with ``rows`` rows."""


class Parts(NamedTuple):
    """A sparse (CSR) matrix as dense tensors, since ``torch.compile`` supports no sparse ones."""

    crow: Tensor
    """Row pointers, int64. Shape: ``(N + 1,)``."""
    columns: Tensor
    """Column indices, int64. Shape: ``(E,)``."""
    values: Tensor
    """Stored values. Shape: ``(E,)``."""

    @classmethod
    def of(cls, x: Tensor) -> "Parts":
        """Returns the parts of a sparse (CSR) tensor, which share its memory."""
        # Unlike detach, data makes no views, whose base torch.compile would look at.
        return cls(x.crow_indices().data, x.col_indices().data, x.values().data)


class Rows(NamedTuple):
    """Consecutive rows of a matrix, and their offset, which determines their dropout masks."""

    matrix: Tensor
    """The rows, dense or sparse (CSR)."""
    before: int = 0
    """Number of stored values in the preceding rows."""


def take_rows(x: Tensor | Rows, start: int, stop: int) -> Rows:
    """Returns rows ``start`` to ``stop`` of a dense or sparse (CSR) matrix without copying
    values."""
    x, before = x if isinstance(x, Rows) else (x, 0)
    if x.layout != torch.sparse_csr:
        return Rows(x[start:stop], before + start * x.size(1))
    crow = x.crow_indices()[start : stop + 1]
    entries = slice(int(crow[0]), int(crow[-1]))
    columns, values = x.col_indices()[entries], x.values()[entries]
    return Rows(csr(crow - crow[0], columns, values, x.size(1)), before + entries.start)


def gather_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Returns the given rows of a dense or sparse (CSR) matrix as a new matrix."""
    check_all("gather_rows", ROWS_TAKES, (x.size(0), nodes))
    if x.layout != torch.sparse_csr:
        return x[nodes]
    start = x.crow_indices()[nodes]
    lengths = x.crow_indices()[nodes + 1] - start
    crow = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    at = torch.arange(int(crow[-1]), device=x.device) + (start - crow[:-1]).repeat_interleave(
        lengths
    )
    return csr(crow, x.col_indices()[at], x.values()[at], x.size(1))


def csr(crow: Tensor, columns: Tensor, values: Tensor, width: int) -> Tensor:
    """Builds a CSR tensor without PyTorch's beta warning and without checks."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        size = (crow.numel() - 1, width)
        return torch.sparse_csr_tensor(crow, columns, values, size, check_invariants=False)
