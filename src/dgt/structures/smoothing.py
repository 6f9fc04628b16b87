"""Features smoothed over the graph, and the nodes that are then alike."""

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dgt.graph import adjacency
from dgt.structures.matrices import symmetric

# Rows of distances at a time.
BLOCK = 1024


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
        all of them.
    """
    A = adjacency(edge_index, x.shape[0])
    by = scipy.sparse.diags_array(1 / np.maximum(np.diff(A.indptr), 1)) @ A
    found = [_nearest(x, neighbors)]
    for _ in range(steps):
        x = by @ x
        found.append(_nearest(x, neighbors))
    return torch.stack(found)


def _nearest(x: np.ndarray | scipy.sparse.csr_array, count: int) -> Tensor:
    N = x.shape[0]
    count = min(count, N)
    dense: np.ndarray = x.toarray() if scipy.sparse.issparse(x) else x  # type: ignore[union-attr]
    rows = dense.astype(np.float64)
    sizes = (rows**2).sum(axis=1)
    found = np.empty((N, count), np.int64)
    for start in range(0, N, BLOCK):
        part = slice(start, start + BLOCK)
        # Rounded, so that equal distances are equal in spite of their last bits.
        distances = (sizes[None, :] - 2 * (rows[part] @ rows.T)).round(9)
        distances[np.arange(len(distances)), np.arange(N)[part]] = -np.inf
        furthest = np.partition(distances, count - 1, axis=1)[:, count - 1, None]
        row, node = np.nonzero(distances <= furthest)  # by row, then by id
        order = np.lexsort((distances[row, node], row))  # stable: ties stay by id
        first = np.searchsorted(row, np.arange(len(distances)))
        found[part] = node[order][first[:, None] + np.arange(count)]
    return torch.from_numpy(found)
