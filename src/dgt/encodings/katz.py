"""The Katz encoding: weighted paths from each node to the anchors."""

from functools import cache as once
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from dgt.config import EncodingConfig
from dgt.data.edge_tables import edge_weights, of_table, table_names
from dgt.data.matrices import adjacency, require_graph, scaled_rows, to_torch
from dgt.encodings.encoding import Encoding
from dgt.errors import InputError
from dgt.storage import segments
from dgt.storage.files import cache_folder
from dgt.storage.fingerprint import fingerprint

SCALINGS = ("sum", "l2", "none")
FOLDER = "katz"  # in the cache

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


def katz(
    edge_index: Tensor,
    num_nodes: int,
    *,
    order: int = EncodingConfig.katz_order,
    beta: float = EncodingConfig.katz_beta,
    scaling: str = EncodingConfig.katz_scaling,
    anchors: Tensor,
    weights: Tensor | None = None,
    cache: bool = False,
) -> Tensor:
    r"""Computes the columns of the anchors in the matrix of the paper's Katz positional encoding,

    .. math::
        \hat{\mathbf{A}} = \sum_{k=1}^{K} \beta^{k-1} \mathbf{A}^k

    where :math:`\mathbf{A}` is the symmetric adjacency matrix without self-loops. An entry counts
    the paths of up to :math:`K` edges from a node to an anchor; longer paths weigh less.

    Args:
        edge_index: Edges, int64 ``(2, E)``. They are treated as undirected, and self-loops are
            ignored.
        num_nodes: Number of nodes N.
        order: Longest path counted, K.
        beta: Factor of a path's weight for each further edge.
        scaling: Divide each row by its ``"sum"`` or its ``"l2"`` norm, or do not scale it
            (``"none"``).
        anchors: Nodes that get a column, int64 ``(N',)``. The column of -1, an anchor that is not
            in this graph, is zero.
        weights: Weight of each edge, for :math:`\mathbf{A}` (default: 1). The edges must then be
            in both directions, without duplicates and self-loops. Shape: ``(E,)``.
        cache: Read the rows from the cache if ``dgt prepare`` has written them there.

    Returns:
        A sparse CSR tensor, float32 ``(N, N')``.
    """
    rows = katz_rows(
        edge_index,
        num_nodes,
        order=order,
        beta=beta,
        scaling=scaling,
        anchors=anchors,
        weights=weights,
    )
    if cache and not rows.missing(cache_folder()):
        made = list(segments.through(rows, cache_folder()))
    else:
        made = [rows.make(*rows.span(each), lambda done: None) for each in rows.segments()]
    counts, indices, values = (np.concatenate(parts) for parts in zip(*made, strict=True))
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return to_torch(scipy.sparse.csr_array((values, indices, indptr), (num_nodes, len(anchors))))


def katz_rows(
    edge_index: Tensor,
    num_nodes: int,
    *,
    order: int,
    beta: float,
    scaling: str,
    anchors: Tensor,
    weights: Tensor | None = None,
) -> segments.CachedRows:
    """Describes how to compute the rows of :func:`katz`.

    A segment consists of the number of nonzero values in each row, their columns, and the values.
    """
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
        """Returns A, and for the powers below ``order`` times the selection of the anchors, their
        weighted sum and the last one. All products have shape ``(N, N')``, never ``(N, N)``."""
        A = adjacency(edge_index, num_nodes, weights)
        present = np.flatnonzero(chosen >= 0)
        selection = scipy.sparse.csr_array(
            (np.ones(len(present)), (chosen[present], present)), shape=(num_nodes, len(chosen))
        )
        total = power = A @ selection
        for k in range(2, order):
            power = A @ power
            total = total + beta ** (k - 1) * power
        return A, total, power

    def make(start: int, stop: int, advance: segments.Advance) -> list[np.ndarray]:
        # The highest power has the most nonzero values, so it is computed by segment.
        A, total, power = powers()
        rows = total[start:stop]
        if order > 1:
            rows = rows + beta ** (order - 1) * (A[start:stop] @ power)
        rows.sort_indices()
        rows = scaled_rows(rows, scaling)
        advance(stop - start)
        return [np.diff(rows.indptr), rows.indices, rows.data.astype(np.float32)]

    decisive = [edge_index.cpu().numpy(), chosen]
    if weights is not None:
        decisive.append(weights.cpu().numpy())
    name = fingerprint(decisive, ("katz", num_nodes, order, beta, scaling))
    return segments.CachedRows(f"{FOLDER}/{name}", "Katz encoding", num_nodes, make)


def katz_of(
    A: scipy.sparse.csr_array, nodes: np.ndarray, settings: EncodingConfig, anchors: Tensor
) -> Tensor:
    """Computes the rows of :func:`katz` for a few nodes, without those of all others.

    Args:
        A: Symmetric adjacency matrix without self-loops. Shape: ``(N, N)``.
        nodes: The nodes, int64 ``(Q,)``.
        settings: The settings of the encoding.
        anchors: As for :func:`katz`.

    Returns:
        A sparse CSR tensor, float32 ``(Q, N')``.
    """
    total = power = A[nodes]
    for k in range(2, settings.katz_order + 1):
        power = power @ A
        total = total + settings.katz_beta ** (k - 1) * power
    chosen = anchors.cpu().numpy()
    present = np.flatnonzero(chosen >= 0)
    shape = (A.shape[0], len(chosen))
    place = (chosen[present], present)
    columns = total @ scipy.sparse.csr_array((np.ones(len(present)), place), shape=shape)
    return to_torch(scaled_rows(columns, settings.katz_scaling))


class Katz(BaseTransform):
    """A PyG transform that sets ``data.katz``, the columns of :func:`katz`, and ``data.anchors``,
    their nodes.

    Args:
        order: Longest path counted, K.
        beta: Factor of a path's weight for each further edge.
        scaling: Divide each row by its ``"sum"`` or its ``"l2"`` norm, or do not scale it
            (``"none"``).
        anchors: Maximum number of anchors N', the nodes of highest degree (default: see
            :func:`choose_anchors`).
    """

    def __init__(
        self,
        order: int = EncodingConfig.katz_order,
        beta: float = EncodingConfig.katz_beta,
        scaling: str = EncodingConfig.katz_scaling,
        anchors: int | None = EncodingConfig.anchors,
    ) -> None:
        EncodingConfig(
            katz_order=order,
            katz_beta=beta,
            katz_scaling=scaling,  # type: ignore[arg-type]
            anchors=anchors,
        )
        self.order = order
        self.beta = beta
        self.scaling = scaling
        self.anchors = anchors

    def forward(self, data: Data) -> Data:
        require_graph(data)
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


def _arguments(data: Data, settings: EncodingConfig, anchors: Tensor | None) -> dict[str, Any]:
    if anchors is None:
        anchors = choose_anchors(data.edge_index, data.num_nodes, settings.anchors)
    return {
        "edge_index": data.edge_index,
        "num_nodes": data.num_nodes,
        "order": settings.katz_order,
        "beta": settings.katz_beta,
        "scaling": settings.katz_scaling,
        "anchors": anchors,
        "weights": edge_weights(data),
    }


def _columns(data: Data, settings: EncodingConfig, anchors: Tensor | None) -> Tensor:
    """Returns the columns of the anchors; with several edge tables, for each of them."""
    names = table_names(data)
    if not names:
        return katz(**_arguments(data, settings, anchors), cache=True)
    anchors = _arguments(data, settings, anchors)["anchors"]
    parts = [katz(**_arguments(of_table(data, name), settings, anchors)) for name in names]
    arrays = [
        scipy.sparse.csr_array(
            (part.values().numpy(), part.col_indices().numpy(), part.crow_indices().numpy()),
            tuple(part.shape),
        )
        for part in parts
    ]
    return to_torch(scipy.sparse.csr_array(scipy.sparse.hstack(arrays, format="csr")))


KATZ = Encoding(
    columns=_columns,
    carries_over="anchors",
    rows=lambda data, settings: katz_rows(**_arguments(data, settings, None)),
    tuned=True,
)
