"""Distances in the graph."""

from collections.abc import Iterable

import numpy as np
import scipy.sparse


def next_hop(A: scipy.sparse.csr_array, frontier: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Returns the unseen neighbors of some nodes, in ascending order, and marks them as seen.

    Args:
        A: Symmetric adjacency matrix. Shape: ``(N, N)``.
        frontier: The nodes.
        seen: Boolean mask of the nodes that were seen before. Shape: ``(N,)``.
    """
    # A few rows are read one by one; for many, a product with the matrix is faster.
    if int((A.indptr[frontier + 1] - A.indptr[frontier]).sum()) < A.nnz // 20:
        rows = [A.indices[A.indptr[n] : A.indptr[n + 1]] for n in frontier.tolist()]
        near = np.unique(np.concatenate(rows)) if rows else frontier
        found = near[~seen[near]].astype(np.int64)
    else:
        here = np.zeros(A.shape[0])
        here[frontier] = 1
        found = np.flatnonzero((A @ here > 0) & ~seen)
    seen[found] = True
    return found


def hops_to(
    A: scipy.sparse.csr_array, source: int, targets: Iterable[int]
) -> dict[int, int | None]:
    """Returns the number of hops from a node to some others, None where there is no path.

    The search ends as soon as all of them are found.
    """
    wanted = {int(n) for n in targets}
    hops: dict[int, int | None] = dict.fromkeys(wanted)
    seen = np.zeros(A.shape[0], dtype=bool)
    seen[source] = True
    frontier, hop = np.array([source]), 0
    while True:
        reached = wanted.intersection(frontier.tolist()) if len(wanted) else set()
        hops |= dict.fromkeys(reached, hop)
        wanted -= reached
        if not wanted or not len(frontier):
            return hops
        frontier, hop = next_hop(A, frontier, seen), hop + 1
