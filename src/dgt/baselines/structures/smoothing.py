"""Features smoothed over the graph, and nearest neighbors by smoothed features."""

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dgt.baselines.structures.matrices import symmetric
from dgt.baselines.structures.nearest import DistanceIndex
from dgt.data.matrices import adjacency
from dgt.sequences.index import EXACT_NODES

# Rows of the distance matrix that are computed at a time.
CHUNK = 1024
# Up to this many nodes, the scalar products of all pairs are kept in memory.
SMALL_GRAPH = 10_000


def smoothed(
    x: np.ndarray | scipy.sparse.csr_array,
    edge_index: Tensor,
    steps: int,
    weights: Tensor | None = None,
) -> np.ndarray | scipy.sparse.csr_array:
    r"""Returns the smoothed features :math:`\mathbf{S}^K \mathbf{X}` of SGC, where K is ``steps``
    and :math:`\mathbf{S}` the normalized adjacency matrix with self-loops; sparse if ``x`` is."""
    N = x.shape[0]
    S = symmetric(adjacency(edge_index, N, weights) + scipy.sparse.eye_array(N, format="csr"))
    for _ in range(steps):
        x = S @ x
    return x


def smoothed_neighbors(
    x: np.ndarray | scipy.sparse.csr_array,
    edge_index: Tensor,
    steps: int,
    neighbors: int,
    advance: Callable[[int], None] = lambda done: None,
) -> Tensor:
    """Returns the nearest neighbors of every node by features that are smoothed by averaging over
    neighbors 0, 1, ... ``steps`` times.

    The result is exact, except for dense features of more than ``EXACT_NODES`` nodes: then an
    approximate index finds nearly all of the nearest neighbors.

    Args:
        x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
        edge_index: Edges. Shape: ``(2, E)``.
        steps: Number of smoothing steps.
        neighbors: Number of neighbors, including the node itself; all nodes of a smaller graph.
        advance: Called with the number of nodes processed since the last call, (K + 1) N in all for
            K steps.

    Returns:
        int64, the node itself first, then nearest first, ties by id. Shape:
        ``(steps + 1, N, neighbors)``.
    """
    N = x.shape[0]
    A = adjacency(edge_index, N)
    mean = (scipy.sparse.diags_array(1 / np.maximum(np.diff(A.indptr), 1)) @ A).tocsr()
    found = []
    products = _products(x, slice(None)) if N <= SMALL_GRAPH else None
    for step in range(steps + 1):
        if products is None:
            x = mean @ x if step else x
            if N > EXACT_NODES and isinstance(x, np.ndarray):
                found.append(_nearest_by_index(x, neighbors, advance))
                continue
            sizes = np.asarray((x * x).sum(axis=1)).ravel()
            found.append(_nearest(partial(_products, x), sizes, neighbors, advance))
        else:
            # Smoothing the products gives the products of smoothed rows, and is faster.
            products = mean @ (mean @ products).T if step else products
            sizes = products.diagonal()
            found.append(_nearest(products.__getitem__, sizes, neighbors, advance))
    return torch.stack(found)


def _products(x: np.ndarray | scipy.sparse.csr_array, rows: slice) -> np.ndarray:
    """Returns the scalar products of some rows with all rows."""
    products = x[rows].astype(np.float64) @ x.T.astype(np.float64)
    return products if isinstance(products, np.ndarray) else np.asarray(products.todense())


def _nearest(
    products: Callable[[slice], np.ndarray],
    sizes: np.ndarray,
    neighbors: int,
    advance: Callable[[int], None],
) -> Tensor:
    """Returns the nearest nodes of each node, itself first, from scalar products and squared
    norms."""
    N = len(sizes)
    count = min(neighbors, N)
    found = np.empty((N, count), np.int64)
    for start in range(0, N, CHUNK):
        part = slice(start, min(start + CHUNK, N))
        # Rounded, so that rounding errors do not break ties.
        distances = (sizes - 2 * products(part)).round(9)
        distances[np.arange(len(distances)), np.arange(N)[part]] = -np.inf
        furthest = np.partition(distances, count - 1, axis=1)[:, count - 1, None]
        row, node = np.nonzero(distances <= furthest)  # by row, then by id
        order = np.lexsort((distances[row, node], row))  # stable: ties stay by id
        first = np.searchsorted(row, np.arange(len(distances)))
        found[part] = node[order][first[:, None] + np.arange(count)]
        advance(len(distances))
    return torch.from_numpy(found)


def _nearest_by_index(x: np.ndarray, neighbors: int, advance: Callable[[int], None]) -> Tensor:
    """Does the same with an approximate index over the features."""
    N, x = len(x), x.astype(np.float64)
    index = DistanceIndex(x.astype(np.float32))
    found = np.empty((N, neighbors), np.int64)
    for start in range(0, N, CHUNK):
        own = np.arange(start, min(start + CHUNK, N))
        # A few more than needed, as the index does not order ties. Where it finds fewer, the node
        # itself fills the gaps.
        others = index.nearest(start, start + len(own), neighbors + 8)
        distances = ((x[others] - x[own, None]) ** 2).sum(axis=2).round(9)
        distances[others < 0] = np.inf
        others = np.where(others < 0, own[:, None], others)
        distances[others == own[:, None]] = np.inf
        order = np.lexsort((others, distances))[:, : neighbors - 1]
        found[own] = np.column_stack([own, np.take_along_axis(others, order, axis=1)])
        advance(len(own))
    return torch.from_numpy(found)
