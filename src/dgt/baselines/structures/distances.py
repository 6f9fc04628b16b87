"""Shortest paths between all pairs of nodes."""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from dgt.data.matrices import adjacency
from dgt.system import threads


def shortest_paths(edge_index: Tensor, num_nodes: int, limit: int = 254) -> Tensor:
    """Returns the lengths of the shortest paths between all pairs of nodes.

    Args:
        edge_index: Edges. Shape: ``(2, E)``.
        num_nodes: Number of nodes N.
        limit: Longer paths get this length; pairs without a path get ``limit + 1``.

    Returns:
        uint8. Shape: ``(N, N)``.
    """
    A = adjacency(edge_index, num_nodes)
    out = np.full((num_nodes, num_nodes), limit + 1, np.uint8)
    threads.run(_search, num_nodes, A.indptr, A.indices, limit, out)
    return torch.from_numpy(out)


@njit(cache=True, error_model="numpy", nogil=True)
def _search(thread: int, threads: int, start: Any, other: Any, limit: int, out: Any) -> None:
    N = len(out)
    queue = np.empty(N, np.int64)
    for source in range(thread, N, threads):
        row = out[source]
        row[source] = 0
        queue[0], head, tail = source, 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            further = min(row[i] + 1, limit)
            for e in range(start[i], start[i + 1]):
                j = other[e]
                if row[j] > limit:
                    row[j] = further
                    queue[tail] = j
                    tail += 1
