"""Adjacency matrices in the forms that graph convolutions use."""

import numpy as np
import scipy.sparse
from torch import Tensor

from dgt.graph import adjacency, to_torch

# From this share of non-zero values on, a product with the dense matrix is faster.
DENSE_SHARE = 0.2


def joined(edge_index: Tensor, num_nodes: int) -> Tensor:
    """A + I, sparse CSR [N, N]: each node's neighbours and itself."""
    A = adjacency(edge_index, num_nodes) + scipy.sparse.eye_array(num_nodes, format="csr")
    return to_torch(_sorted(A))


def normalized(edge_index: Tensor, num_nodes: int, *, loops: bool = True) -> Tensor:
    r"""The sparse CSR matrix :math:`\mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}` [N, N], of
    :math:`\mathbf{A} + \mathbf{I}` if ``loops``."""
    A = adjacency(edge_index, num_nodes)
    if loops:
        A = A + scipy.sparse.eye_array(num_nodes, format="csr")
    return to_torch(symmetric(A))


def mean(edge_index: Tensor, num_nodes: int) -> Tensor:
    r"""The sparse CSR matrix :math:`\mathbf{D}^{-1} \mathbf{A}` [N, N]: the mean of a node's
    neighbours."""
    A = adjacency(edge_index, num_nodes)
    A.data = A.data / np.repeat(np.diff(A.indptr), np.diff(A.indptr))
    return to_torch(A)


def two_hop(edge_index: Tensor, num_nodes: int) -> Tensor:
    r"""The matrix :math:`\mathbf{D}_2^{-1/2} \mathbf{A}_2 \mathbf{D}_2^{-1/2}` [N, N] of the nodes
    that are exactly two edges apart; sparse CSR, or dense where they are many."""
    A = adjacency(edge_index, num_nodes)
    near = A + scipy.sparse.eye_array(num_nodes, format="csr")
    far = A @ A
    far.data[:] = 1
    # What is near has the value 1 - 2 or less.
    far = far - 2 * near
    far.data = (far.data > 0).astype(far.data.dtype)
    far.eliminate_zeros()
    matrix = to_torch(symmetric(far))
    dense = matrix.values().numel() > DENSE_SHARE * num_nodes**2
    return matrix.to_dense() if dense else matrix


def symmetric(A: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """Each value divided by the roots of its row's and its column's sum; columns sorted."""
    A = _sorted(A)
    sums = A.sum(axis=1)
    roots = np.sqrt(np.where(sums > 0, sums, 1))
    values = A.data / np.repeat(roots, np.diff(A.indptr)) / roots[A.indices]
    return scipy.sparse.csr_array((values, A.indices, A.indptr), A.shape)


def _sorted(A: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    A = scipy.sparse.csr_array(A)
    A.sort_indices()
    return A
