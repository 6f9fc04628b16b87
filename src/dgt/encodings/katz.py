"""The Katz encoding: paths from each node to some others."""

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from dgt.errors import InputError
from dgt.graph import adjacency, scaled_rows, to_torch

SCALINGS = ("sum", "l2", "none")
BLOCK = 8192

# Without a number of anchors: all nodes of a small graph. On a large one the paths between all
# nodes would not fit, and its hubs reach so many nodes that a few of them make dense columns.
SMALL_GRAPH = 8192
FEW_ANCHORS = 128


def choose_anchors(edge_index: Tensor, num_nodes: int, count: int | None = None) -> Tensor:
    """The ``count`` nodes of highest degree, ties by id; all nodes, by id, if there are no more.

    Args:
        edge_index: the edges, int64 [2, E].
        num_nodes: number of nodes N.
        count: number of anchors N' at most; by default all nodes of a graph of up to 8192 nodes,
            else 128.
    """
    if count is None:
        count = num_nodes if num_nodes <= SMALL_GRAPH else FEW_ANCHORS
    if num_nodes <= count:
        return torch.arange(num_nodes)
    degrees = np.diff(adjacency(edge_index, num_nodes).indptr)
    return torch.from_numpy(np.argsort(-degrees, kind="stable")[:count])


def katz(
    edge_index: Tensor,
    num_nodes: int,
    *,
    order: int = 2,
    beta: float = 0.5,
    scaling: str = "l2",
    anchors: Tensor,
) -> Tensor:
    r"""The anchors' columns of the Katz matrix of the paper's Katz positional encoding,

    .. math::
        \hat{\mathbf{A}} = \sum_{k=1}^{K} \beta^{k-1} \mathbf{A}^k

    where :math:`\mathbf{A}` is the adjacency matrix, symmetric and without self-loops: paths of up
    to :math:`K` edges from each node to each anchor, a longer path weighing less.

    Args:
        edge_index: the edges, int64 [2, E]; taken as undirected, self-loops left out.
        num_nodes: number of nodes N.
        order: longest path counted, K.
        beta: weight of a path for each further edge.
        scaling: each row is divided by its ``"sum"``, by its ``"l2"`` norm, or not (``"none"``).
        anchors: the nodes that get a column, int64 [N']; -1 stands for an anchor that is not in
            this graph, whose column is zero.

    Returns:
        A sparse CSR tensor, float32 [N, N'].
    """
    if scaling not in SCALINGS:
        raise InputError(f"scaling: got {scaling!r}, expected one of {', '.join(SCALINGS)}")
    if order < 1:
        raise InputError(f"order: got {order}, expected at least 1")
    chosen = anchors.cpu().numpy()
    if chosen.size and (chosen.min() < -1 or chosen.max() >= num_nodes):
        wrong = chosen.min() if chosen.min() < -1 else chosen.max()
        raise InputError(f"anchors: node {wrong} is not one of the {num_nodes} nodes")
    A = adjacency(edge_index, num_nodes)
    present = np.flatnonzero(chosen >= 0)
    selection = scipy.sparse.csr_array(
        (np.ones(len(present)), (chosen[present], present)), shape=(num_nodes, len(chosen))
    )
    # A^k times the selection, from the right: [N, N'] at every step, never [N, N]. The last step
    # fills up fastest, so it is made, scaled and rounded a block of rows at a time.
    total = power = A @ selection
    for k in range(2, order):
        power = A @ power
        total = total + beta ** (k - 1) * power
    blocks = []
    for start in range(0, num_nodes, BLOCK):
        rows = total[start : start + BLOCK]
        if order > 1:
            rows = rows + beta ** (order - 1) * (A[start : start + BLOCK] @ power)
        rows.sort_indices()
        blocks.append(scaled_rows(rows, scaling).astype(np.float32))
    return to_torch(scipy.sparse.vstack(blocks, format="csr"))


class Katz(BaseTransform):
    """Sets ``data.katz``, the columns of :func:`katz`, and ``data.anchors``, their nodes.

    Args:
        order: longest path counted.
        beta: weight of a path for each further edge.
        scaling: each row is divided by its ``"sum"``, its ``"l2"`` norm, or not (``"none"``).
        anchors: number of anchors N' at most, the nodes of highest degree; by default as in
            :func:`choose_anchors`.
    """

    def __init__(
        self, order: int = 2, beta: float = 0.5, scaling: str = "l2", anchors: int | None = None
    ) -> None:
        self.order = order
        self.beta = beta
        self.scaling = scaling
        self.anchors = anchors

    def forward(self, data: Data) -> Data:
        data.anchors = choose_anchors(data.edge_index, data.num_nodes, self.anchors)
        data.katz = katz(
            data.edge_index,
            data.num_nodes,
            order=self.order,
            beta=self.beta,
            scaling=self.scaling,
            anchors=data.anchors,
        )
        return data

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(order={self.order}, beta={self.beta}, "
            f"scaling={self.scaling!r}, anchors={self.anchors})"
        )
