"""Adjacency matrices in the forms that graph convolutions use."""

import numpy as np
import scipy.sparse
from torch import Tensor

from dgt.data.matrices import adjacency, to_torch

# Above this share of nonzero entries, a dense matrix is faster to multiply with.
DENSE_SHARE = 0.2


def joined(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Returns A + I, the adjacency matrix with self-loops, in CSR format. Shape: ``(N, N)``."""
    A = adjacency(edge_index, num_nodes) + scipy.sparse.eye_array(num_nodes, format="csr")
    return to_torch(_sorted(A))


def normalized(
    edge_index: Tensor, num_nodes: int, *, loops: bool = True, weights: Tensor | None = None
) -> Tensor:
    r"""Returns :math:`\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}` in CSR format; with
    ``loops``, of :math:`\mathbf{A} + \mathbf{I}` instead of :math:`\mathbf{A}`. Shape:
    ``(N, N)``."""
    A = adjacency(edge_index, num_nodes, weights)
    if loops:
        A = A + scipy.sparse.eye_array(num_nodes, format="csr")
    return to_torch(symmetric(A))


def mean(edge_index: Tensor, num_nodes: int, *, weights: Tensor | None = None) -> Tensor:
    r"""Returns :math:`\mathbf{D}^{-1} \mathbf{A}`, which averages over neighbors, in CSR format.
    Shape: ``(N, N)``."""
    A = adjacency(edge_index, num_nodes, weights)
    A.data = A.data / np.repeat(A.sum(axis=1), np.diff(A.indptr))
    return to_torch(A)


def two_hop(edge_index: Tensor, num_nodes: int) -> Tensor:
    r"""Returns :math:`\mathbf{D}_2^{-1/2} \mathbf{A}_2 \mathbf{D}_2^{-1/2}`, where
    :math:`\mathbf{A}_2` connects the nodes at distance 2, in CSR format or dense if these are many.
    Shape: ``(N, N)``."""
    A = adjacency(edge_index, num_nodes)
    near = A + scipy.sparse.eye_array(num_nodes, format="csr")
    far = A @ A
    far.data[:] = 1
    # Entries at distance 0 or 1 become 1 - 2 or less.
    far = far - 2 * near
    far.data = (far.data > 0).astype(far.data.dtype)
    far.eliminate_zeros()
    matrix = to_torch(symmetric(far))
    dense = matrix.values().numel() > DENSE_SHARE * num_nodes**2
    return matrix.to_dense() if dense else matrix


def symmetric(A: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Divides each entry by the square roots of the sums of its row and column; sorts the
    columns."""
    A = _sorted(A)
    sums = A.sum(axis=1)
    roots = np.sqrt(np.where(sums > 0, sums, 1))
    values = A.data / np.repeat(roots, np.diff(A.indptr)) / roots[A.indices]
    return scipy.sparse.csr_array((values, A.indices, A.indptr), A.shape)


def _sorted(A: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    A = scipy.sparse.csr_array(A)
    A.sort_indices()
    return A
