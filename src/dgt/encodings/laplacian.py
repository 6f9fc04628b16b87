"""The Laplacian encoding: eigenvectors of the graph Laplacian."""

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import torch
from torch import Tensor

from dgt.config import EncodingConfig
from dgt.data.matrices import adjacency
from dgt.encodings.encoding import Encoding

# Up to this number of nodes, computing all eigenvectors is faster than computing a few.
DENSE_NODES = 500


def laplacian(
    edge_index: Tensor, num_nodes: int, k: int = EncodingConfig.laplacian_columns
) -> Tensor:
    r"""Computes Laplacian eigenvectors, the positional encoding of `"A Generalization of
    Transformer Networks to Graphs" <https://arxiv.org/abs/2012.09699>`_: those with the smallest
    positive eigenvalues of

    .. math::
        \mathbf{L} = \mathbf{I} - \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}

    where :math:`\mathbf{A}` is the symmetric adjacency matrix without self-loops. Each component
    of the graph has one eigenvector with eigenvalue zero, which does not tell its nodes apart;
    these are left out. Signs are chosen so that the value of largest magnitude in each eigenvector
    is positive.

    Args:
        edge_index: Edges, int64 ``(2, E)``. They are treated as undirected, and self-loops are
            ignored.
        num_nodes: Number of nodes N.
        k: Number of eigenvectors.

    Returns:
        float32 ``(N, k)``, padded with zero columns if there are fewer eigenvectors.
    """
    A = adjacency(edge_index, num_nodes)
    degrees = np.diff(A.indptr)
    roots = scipy.sparse.diags_array(1 / np.sqrt(np.maximum(degrees, 1)))
    normalized = (roots @ A @ roots).tocsr()
    _, component = scipy.sparse.csgraph.connected_components(A, directed=False)
    # The eigenvectors with eigenvalue zero, orthonormal, one per component. Isolated nodes are
    # components, too.
    trivial = np.sqrt(np.maximum(degrees, 1))
    trivial = trivial / np.sqrt(np.bincount(component, trivial**2))[component]
    null_space = scipy.sparse.csr_array((trivial, (np.arange(num_nodes), component)))

    def shifted(vectors: np.ndarray) -> np.ndarray:
        """Multiplies with 2I - L, whose eigenvalues are in [0, 2]. The largest ones, which belong
        to the eigenvalue zero of L, are moved below 0."""
        return vectors + normalized @ vectors - 3 * (null_space @ (null_space.T @ vectors))

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
    # The last bits depend on the number of threads, so they are rounded away. Among values of
    # equal magnitude, the first one determines the sign.
    columns = columns.round(5)
    largest = columns[abs(columns).argmax(axis=0), np.arange(k)]
    return torch.from_numpy(columns * np.where(largest < 0, -1, 1)).float()


LAPLACIAN = Encoding(
    columns=lambda data, settings, _: laplacian(
        data.edge_index, data.num_nodes, settings.laplacian_columns
    ),
    carries_over="edges",
)
