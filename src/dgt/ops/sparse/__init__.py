"""Sparse matrices (CSR): selection of rows, products with dense matrices, and a linear layer whose
input may be sparse."""

from dgt.ops.sparse.layer import SparseLinear
from dgt.ops.sparse.product import matmul
from dgt.ops.sparse.rows import Parts, Rows, csr, gather_rows, take_rows

__all__ = ["Parts", "Rows", "SparseLinear", "csr", "gather_rows", "matmul", "take_rows"]
