"""Anchors: the nodes that get a column in the Katz encoding."""

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dgt.data.matrices import adjacency

# Number of anchors by the size of the graph.
SMALL_GRAPH = 8192
FEW_ANCHORS = 128

# Number of anchors by budget. The values that are stored take at most as much memory as a few
# representations of 64 channels, and a step at most as much time as a linear layer on each node.
VALUES_PER_NODE = 128
# Paths that are counted, for the time to compute them: about 10 seconds for a million nodes.
PATHS_PER_NODE = 2048
# Every process has all weights of the first layer: 1.6 GB for 64 channels, with the state of Adam.
MOST_ANCHORS = 2**20


def choose_anchors(
    edge_index: Tensor,
    num_nodes: int,
    count: int | None = None,
    rule: str = "size",
    order: int = 1,
) -> Tensor:
    """Returns the nodes of highest degree, ties by id; all nodes by id if the graph has no more.

    Args:
        edge_index: Edges, int64 ``(2, E)``.
        num_nodes: Number of nodes N.
        count: Maximum number of anchors N' (default: by the rule).
        rule: ``"size"``: all nodes of a graph of up to 8192 nodes, 128 of a larger one.
            ``"budget"``: as many as :func:`affordable_anchors` returns.
        order: Longest path that the encoding counts.

    Returns:
        int64 ``(N',)``.
    """
    if count is None and rule == "size":
        count = num_nodes if num_nodes <= SMALL_GRAPH else FEW_ANCHORS
    if count is not None and num_nodes <= count:
        return torch.arange(num_nodes)
    A = adjacency(edge_index, num_nodes)
    if count is None:
        count = affordable_anchors(A, order)
        if count >= num_nodes:
            return torch.arange(num_nodes)
    degrees = np.diff(A.indptr)
    return torch.from_numpy(np.argsort(-degrees, kind="stable")[:count])


def affordable_anchors(A: scipy.sparse.csr_array, order: int = 1) -> int:
    """Returns the largest number of anchors, up to all nodes, with at most ``VALUES_PER_NODE``
    stored values and ``PATHS_PER_NODE`` counted paths per node on average.

    The numbers depend on the graph alone, so that they are the same on every machine. Values are
    bounded from above by the number of paths. Up to ``SMALL_GRAPH`` nodes, all are anchors.

    Args:
        A: Symmetric adjacency matrix. Shape: ``(N, N)``.
        order: Longest path that is counted.
    """
    N = A.shape[0]
    if N <= SMALL_GRAPH:
        return N
    rank = np.empty(N, dtype=np.int64)
    rank[np.argsort(-np.diff(A.indptr), kind="stable")] = np.arange(N)

    def fits(count: int) -> bool:
        step = (rank < count).astype(np.float64)
        paths = np.zeros(N)  # from each node to the anchors
        for _ in range(order):
            step = A @ step
            paths += step
        values = np.minimum(paths, count)
        return bool(values.sum() <= VALUES_PER_NODE * N and paths.sum() <= PATHS_PER_NODE * N)

    high = min(N, MOST_ANCHORS)
    if fits(high):
        return high
    low = FEW_ANCHORS  # dense columns of so few anchors are always affordable
    while low < high - 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
