"""Features smoothed over the graph, and the nodes that are then alike."""

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dgt.graph import adjacency
from dgt.index import EXACT_NODES, RowIndex
from dgt.structures.matrices import symmetric

# Rows of distances at a time.
BLOCK = 1024
# Up to this many nodes, the products of all pairs are kept.
SMALL_GRAPH = 10_000


def smoothed(
    x: np.ndarray | scipy.sparse.csr_array, edge_index: Tensor, steps: int
) -> np.ndarray | scipy.sparse.csr_array:
    r"""The features after ``steps`` products with the normalised adjacency with self-loops,
    :math:`\mathbf{S}^K \mathbf{X}`, as SGC has them; sparse if ``x`` is."""
    N = x.shape[0]
    S = symmetric(adjacency(edge_index, N) + scipy.sparse.eye_array(N, format="csr"))
    for _ in range(steps):
        x = S @ x
    return x


def smoothed_neighbors(
    x: np.ndarray | scipy.sparse.csr_array, edge_index: Tensor, steps: int, neighbors: int
) -> Tensor:
    """The ``neighbors`` nodes of nearest features of every node, itself first, where features are
    smoothed by 0, 1, ... ``steps`` means over neighbours.

    Returns:
        int64 [steps + 1, N, neighbors], nearest first, ties by id; with fewer nodes in the graph,
        all of them. Exact, except for more than ``EXACT_NODES`` nodes with dense features, where an
        index finds nearly all of the nearest.
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
                found.append(_nearest_by_index(x, neighbors))
                continue
            sizes = np.asarray((x * x).sum(axis=1)).ravel()
            found.append(_nearest(partial(_products, x), sizes, neighbors))
        else:
            # The products of smoothed rows are the smoothed products, which takes less time.
            products = mean @ (mean @ products).T if step else products
            found.append(_nearest(products.__getitem__, products.diagonal(), neighbors))
    return torch.stack(found)


def _products(x: np.ndarray | scipy.sparse.csr_array, rows: slice) -> np.ndarray:
    """The scalar products of some rows with all."""
    products = x[rows].astype(np.float64) @ x.T.astype(np.float64)
    return products if isinstance(products, np.ndarray) else np.asarray(products.todense())


def _nearest(products: Callable[[slice], np.ndarray], sizes: np.ndarray, neighbors: int) -> Tensor:
    """The nearest points of each, itself first, from scalar products and squared lengths."""
    N = len(sizes)
    count = min(neighbors, N)
    found = np.empty((N, count), np.int64)
    for start in range(0, N, BLOCK):
        part = slice(start, min(start + BLOCK, N))
        # Rounded, so that equal distances are equal in spite of their last bits.
        distances = (sizes - 2 * products(part)).round(9)
        distances[np.arange(len(distances)), np.arange(N)[part]] = -np.inf
        furthest = np.partition(distances, count - 1, axis=1)[:, count - 1, None]
        row, node = np.nonzero(distances <= furthest)  # by row, then by id
        order = np.lexsort((distances[row, node], row))  # stable: ties stay by id
        first = np.searchsorted(row, np.arange(len(distances)))
        found[part] = node[order][first[:, None] + np.arange(count)]
    return torch.from_numpy(found)


def _nearest_by_index(x: np.ndarray, neighbors: int) -> Tensor:
    """The same from features, nearly always."""
    N, x = len(x), x.astype(np.float64)
    index = RowIndex(x.astype(np.float32), distance=True)
    found = np.empty((N, neighbors), np.int64)
    for start in range(0, N, BLOCK):
        own = np.arange(start, min(start + BLOCK, N))
        # A few more than needed: the index knows no ties. Where it finds fewer, the node stands in.
        others = index.nearest(start, start + len(own), neighbors + 8)
        distances = ((x[others] - x[own, None]) ** 2).sum(axis=2).round(9)
        distances[others < 0] = np.inf
        others = np.where(others < 0, own[:, None], others)
        distances[others == own[:, None]] = np.inf
        order = np.lexsort((others, distances))[:, : neighbors - 1]
        found[own] = np.column_stack([own, np.take_along_axis(others, order, axis=1)])
    return torch.from_numpy(found)
