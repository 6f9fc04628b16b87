"""The Katz encoding: paths from each node to some others."""

from functools import cache as once

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from dgt import blocks
from dgt.errors import InputError
from dgt.files import cache_folder
from dgt.graph import adjacency, scaled_rows, to_torch

SCALINGS = ("sum", "l2", "none")
FOLDER = "katz"  # in the cache

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
    cache: bool = False,
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
        cache: take the rows from the cache, if ``dgt prepare`` has put them there.

    Returns:
        A sparse CSR tensor, float32 [N, N'].
    """
    rows = katz_rows(
        edge_index, num_nodes, order=order, beta=beta, scaling=scaling, anchors=anchors
    )
    if cache and not rows.missing(cache_folder()):
        made = list(blocks.through(rows, cache_folder()))
    else:
        made = [rows.make(*rows.span(block), lambda done: None) for block in rows.blocks()]
    # The number of values in each row, their columns, and the values.
    counts, indices, values = (np.concatenate(parts) for parts in zip(*made, strict=True))
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return to_torch(scipy.sparse.csr_array((values, indices, indptr), (num_nodes, len(anchors))))


def katz_rows(
    edge_index: Tensor, num_nodes: int, *, order: int, beta: float, scaling: str, anchors: Tensor
) -> blocks.Rows:
    """The rows of :func:`katz`, yet to be made: the number of values in each, their columns, and
    the values."""
    if scaling not in SCALINGS:
        raise InputError(f"scaling: got {scaling!r}, expected one of {', '.join(SCALINGS)}")
    if order < 1:
        raise InputError(f"order: got {order}, expected at least 1")
    chosen = anchors.cpu().numpy()
    if chosen.size and (chosen.min() < -1 or chosen.max() >= num_nodes):
        wrong = chosen.min() if chosen.min() < -1 else chosen.max()
        raise InputError(f"anchors: node {wrong} is not one of the {num_nodes} nodes")

    @once
    def powers() -> tuple[scipy.sparse.csr_array, ...]:
        """A, and of its powers times the selection of the anchors, from the right, the weighted
        sum and the last: [N, N'] at every step, never [N, N]."""
        A = adjacency(edge_index, num_nodes)
        present = np.flatnonzero(chosen >= 0)
        selection = scipy.sparse.csr_array(
            (np.ones(len(present)), (chosen[present], present)), shape=(num_nodes, len(chosen))
        )
        total = power = A @ selection
        for k in range(2, order):
            power = A @ power
            total = total + beta ** (k - 1) * power
        return A, total, power

    def make(start: int, stop: int, advance: blocks.Advance) -> list[np.ndarray]:
        # The last step fills up fastest, so it is made, scaled and rounded by block.
        A, total, power = powers()
        rows = total[start:stop]
        if order > 1:
            rows = rows + beta ** (order - 1) * (A[start:stop] @ power)
        rows.sort_indices()
        rows = scaled_rows(rows, scaling)
        advance(stop - start)
        return [np.diff(rows.indptr), rows.indices, rows.data.astype(np.float32)]

    decisive = (edge_index.cpu().numpy(), chosen)
    name = blocks.fingerprint(("katz", num_nodes, order, beta, scaling), *decisive)
    return blocks.Rows(f"{FOLDER}/{name}", "Katz encoding", num_nodes, make)


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
