"""Absolute orders: one for the whole graph, the same for every base node."""

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra
from torch_geometric.data import Data

from dgt.graph import adjacency, features
from dgt.sequences.similarity import on_grid, unit_rows

STEPS = 1000
TOLERANCE = 1e-12


def absolute_order(data: Data, criterion: str, alpha: float) -> np.ndarray:
    """All nodes in one order; ties by id.

    Args:
        data: the graph.
        criterion: ``"absolute-random"``: a random order, always the same; ``"absolute-bfs"``: by
            hop from the node of highest degree, then by descending degree, what it does not reach
            last; ``"absolute-ppr"``: by descending PageRank; ``"absolute-similarity"``: by
            descending cosine with the mean of all nodes' unit features.
        alpha: teleport probability of the PageRank.

    Returns:
        int64 [N].
    """
    if criterion == "absolute-random":
        return np.random.default_rng(0).permutation(data.num_nodes)
    if criterion == "absolute-similarity":
        return np.argsort(-_centrality(features(data)), kind="stable")
    A = adjacency(data.edge_index, data.num_nodes)
    degrees = np.diff(A.indptr)
    if criterion == "absolute-ppr":
        # Rounded: nodes that are alike tie though their sums differ.
        return np.argsort(-pagerank(A, alpha).astype(np.float32), kind="stable")
    hops = dijkstra(A, indices=degrees.argmax(), unweighted=True)
    return np.lexsort((-degrees, hops))


def pagerank(A: scipy.sparse.csr_array, alpha: float) -> np.ndarray:
    r"""The PageRank :math:`\mathbf{p}` of a symmetric matrix,

    .. math::
        \mathbf{p} = \alpha / N + (1 - \alpha) \mathbf{A} \mathbf{D}^{-1} \mathbf{p}

    a node without edges giving an equal part to all; float64 [N].
    """
    N = A.shape[0]
    degrees = np.diff(A.indptr)
    alone = degrees == 0
    p = np.full(N, 1 / N)
    for _ in range(STEPS):
        spread = A @ (p / np.maximum(degrees, 1)) + p[alone].sum() / N
        before, p = p, alpha / N + (1 - alpha) * spread
        if abs(p - before).sum() < TOLERANCE:
            break
    return p


def _centrality(x: np.ndarray | scipy.sparse.csr_array) -> np.ndarray:
    """Each node's cosine with the mean of the unit features, on a grid."""
    unit = unit_rows(x)
    mean = unit_rows(np.asarray(unit.sum(axis=0)).reshape(1, -1))[0]
    return on_grid(unit @ mean)
