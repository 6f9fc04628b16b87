"""The Laplacian encoding: eigenvectors of the graph."""

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import torch
from torch import Tensor

from dgt.graph import adjacency

# Up to this many nodes all eigenvectors at once are faster than some.
DENSE_NODES = 500


def laplacian(edge_index: Tensor, num_nodes: int, k: int) -> Tensor:
    r"""Laplacian eigenvectors, the positional encoding of `"A Generalization of Transformer
    Networks to Graphs" <https://arxiv.org/abs/2012.09699>`_: those of the smallest eigenvalues
    above zero of

    .. math::
        \mathbf{L} = \mathbf{I} - \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}

    where :math:`\mathbf{A}` is symmetric and without self-loops. Each component of the graph has
    one eigenvector of eigenvalue zero, which tells nothing of the places in it; all these are left
    out. The value of largest size in each eigenvector is positive.

    Args:
        edge_index: the edges, int64 [2, E]; taken as undirected, self-loops left out.
        num_nodes: number of nodes N.
        k: number of eigenvectors.

    Returns:
        float32 [N, k]; columns of zeros where there are fewer eigenvectors.
    """
    A = adjacency(edge_index, num_nodes)
    degrees = np.diff(A.indptr)
    roots = scipy.sparse.diags_array(1 / np.sqrt(np.maximum(degrees, 1)))
    joined = (roots @ A @ roots).tocsr()
    _, component = scipy.sparse.csgraph.connected_components(A, directed=False)
    # Orthonormal: the vectors of eigenvalue zero. An isolated node's value, its only one, is left
    # out too.
    trivial = np.sqrt(np.maximum(degrees, 1))
    trivial = trivial / np.sqrt(np.bincount(component, trivial**2))[component]
    of_component = scipy.sparse.csr_array((trivial, (np.arange(num_nodes), component)))

    def shifted(vectors: np.ndarray) -> np.ndarray:
        """The product with 2I - L, of eigenvalues from 0 to 2, in which those of L's zeros, the
        largest, are moved below 0."""
        flat = of_component @ (of_component.T @ vectors)
        return vectors + joined @ vectors - 3 * flat

    if num_nodes <= max(DENSE_NODES, k + 1):
        values, vectors = np.linalg.eigh(shifted(np.eye(num_nodes)))
    else:
        values, vectors = scipy.sparse.linalg.eigsh(
            scipy.sparse.linalg.LinearOperator((num_nodes, num_nodes), shifted, dtype=np.float64),
            k=k,
            which="LA",
            v0=np.random.default_rng(0).random(num_nodes),
            ncv=min(num_nodes, 4 * k + 20),
            maxiter=100 * num_nodes,
        )
    count = min(k, num_nodes - 1 - int(component.max(initial=0)))
    columns = np.zeros((num_nodes, k))
    columns[:, :count] = vectors[:, np.argsort(-values, kind="stable")[:count]]
    # The last bits depend on the number of threads; what is left of them does not. Of values that
    # are now equal, the first decides the sign.
    columns = columns.round(5)
    largest = columns[abs(columns).argmax(axis=0), np.arange(k)]
    return torch.from_numpy(columns * np.where(largest < 0, -1, 1)).float()
