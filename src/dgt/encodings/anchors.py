"""Anchors: the nodes that get a column in the Katz encoding."""

import numpy as np
import torch
from torch import Tensor

from dgt.data.matrices import adjacency

# Default number of anchors. The paths between all nodes of a large graph would not fit into memory,
# and a few of its hubs already make dense columns.
SMALL_GRAPH = 8192
FEW_ANCHORS = 128


def choose_anchors(edge_index: Tensor, num_nodes: int, count: int | None = None) -> Tensor:
    """Returns the nodes of highest degree, ties by id; all nodes by id if the graph has no more.

    Args:
        edge_index: Edges, int64 ``(2, E)``.
        num_nodes: Number of nodes N.
        count: Maximum number of anchors N' (default: all nodes of a graph of up to 8192 nodes, 128
            of a larger one).

    Returns:
        int64 ``(N',)``.
    """
    if count is None:
        count = num_nodes if num_nodes <= SMALL_GRAPH else FEW_ANCHORS
    if num_nodes <= count:
        return torch.arange(num_nodes)
    degrees = np.diff(adjacency(edge_index, num_nodes).indptr)
    return torch.from_numpy(np.argsort(-degrees, kind="stable")[:count])
