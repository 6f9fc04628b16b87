"""The Katz encoding: weighted paths from each node to the anchors."""

from functools import cache as once
from typing import Any, Literal

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from dgt.config import EncodingConfig
from dgt.config.checks import require_count
from dgt.data.direction import DIRECTED, directed_weights, link_matrix
from dgt.data.edge_tables import edge_weights, of_table, table_names
from dgt.data.matrices import adjacency, require_graph, scaled_rows, to_torch
from dgt.data.tensors import plain
from dgt.encodings.anchors import choose_anchors
from dgt.encodings.encoding import Encoding
from dgt.encodings.make import beside
from dgt.errors import InputError
from dgt.storage import segments
from dgt.storage.files import cache_folder
from dgt.storage.fingerprint import fingerprint
from dgt.system.progress import progress_bar

SCALINGS = ("sum", "l2", "none")
Direction = Literal["both", "out", "in"]
FOLDER = "katz"  # in the cache


def katz(
    edge_index: Tensor,
    num_nodes: int,
    *,
    order: int = EncodingConfig.katz_order,
    beta: float = EncodingConfig.katz_beta,
    scaling: str = EncodingConfig.katz_scaling,
    anchors: Tensor,
    weights: Tensor | None = None,
    direction: Direction = "both",
    cache: bool = False,
) -> Tensor:
    r"""Computes the columns of the anchors in the matrix of the paper's Katz positional encoding,

    .. math::
        \hat{\mathbf{A}} = \sum_{k=1}^{K} \beta^{k-1} \mathbf{A}^k

    where :math:`\mathbf{A}` is the symmetric adjacency matrix without self-loops. An entry counts
    the paths of up to :math:`K` edges from a node to an anchor; longer paths weigh less. Along
    out-links, paths lead from the node to the anchor, along in-links from the anchor to the node.

    Args:
        edge_index: Edges, int64 ``(2, E)``. Self-loops are ignored.
        num_nodes: Number of nodes N.
        order: Longest path counted, K.
        beta: Factor of a path's weight for each further edge.
        scaling: Divide each row by its ``"sum"`` or its ``"l2"`` norm, or do not scale it
            (``"none"``).
        anchors: Nodes that get a column, int64 ``(N',)``. The column of -1, an anchor that is not
            in this graph, is zero.
        weights: Weight of each edge, for :math:`\mathbf{A}` (default: 1). The edges must then be
            in both directions, without duplicates and self-loops. Shape: ``(E,)``.
        direction: ``"both"``: edges are treated as undirected. ``"out"`` and ``"in"``: they lead
            from source to target, and paths follow them forward or backward.
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
        direction=direction,
    )
    if cache and not rows.missing(cache_folder()):
        made = list(segments.through(rows, cache_folder()))
    else:
        with progress_bar(rows.title, num_nodes) as advance:
            made = [rows.make(*rows.span(each), advance) for each in rows.segments()]
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
    direction: Direction = "both",
) -> segments.CachedRows:
    """Describes how to compute the rows of :func:`katz`.

    A segment consists of the number of nonzero values in each row, their columns, and the values.
    """
    if scaling not in SCALINGS:
        raise InputError(f"scaling: got {scaling!r}, expected one of {', '.join(SCALINGS)}")
    if order < 1:
        raise InputError(f"order: got {order}, expected at least 1")
    require_count("num_nodes", num_nodes, least=0)
    chosen = _checked(anchors, num_nodes)

    @once
    def powers() -> tuple[scipy.sparse.csr_array, ...]:
        """Returns A, and for the powers below ``order`` times the selection of the anchors, their
        weighted sum and the last one. All products have shape ``(N, N')``, never ``(N, N)``."""
        if direction == "both":
            A = adjacency(edge_index, num_nodes, weights)
        else:
            A = link_matrix(edge_index, num_nodes, direction, weights)
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
    kind = "katz" if direction == "both" else f"katz-{direction}"
    name = fingerprint(decisive, (kind, num_nodes, order, beta, scaling))
    return segments.CachedRows(f"{FOLDER}/{name}", "Katz encoding", num_nodes, make)


def _checked(anchors: Tensor, num_nodes: int) -> np.ndarray:
    """Returns the anchors as an array, int64 ``(N',)``."""
    given = plain(anchors, "anchors")
    if given.dim() != 1 or given.dtype != torch.int64:
        shown = f"{str(given.dtype).removeprefix('torch.')} of shape {tuple(given.shape)}"
        raise InputError(f"anchors: got {shown}, expected node indices, int64 (N',)")
    chosen = given.numpy()
    if chosen.size and (chosen.min() < -1 or chosen.max() >= num_nodes):
        wrong = chosen.min() if chosen.min() < -1 else chosen.max()
        raise InputError(f"anchors: node {wrong} is not one of the {num_nodes} nodes")
    return chosen


def katz_of(
    A: scipy.sparse.csr_array, nodes: np.ndarray, settings: EncodingConfig, anchors: Tensor
) -> Tensor:
    """Computes the rows of :func:`katz` for a few nodes, without those of all others.

    Args:
        A: Adjacency matrix without self-loops; for out- or in-links, the matrix of these links.
            Shape: ``(N, N)``.
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


def _arguments(
    data: Data, settings: EncodingConfig, anchors: Tensor | None, direction: Direction
) -> dict[str, Any]:
    if anchors is None:
        given = settings.anchors, settings.anchor_rule, settings.katz_order
        anchors = choose_anchors(data.edge_index, data.num_nodes, *given)
    both = direction == "both"
    return {
        "edge_index": data.edge_index if both else data[DIRECTED],
        "num_nodes": data.num_nodes,
        "order": settings.katz_order,
        "beta": settings.katz_beta,
        "scaling": settings.katz_scaling,
        "anchors": anchors,
        "weights": edge_weights(data) if both else directed_weights(data),
        "direction": direction,
    }


def _encoding(direction: Direction, tuned: bool = False) -> Encoding:
    def given(data: Data, settings: EncodingConfig, anchors: Tensor | None) -> list[dict[str, Any]]:
        """Returns the arguments of :func:`katz`; with several edge tables, for each of them."""
        whole = _arguments(data, settings, anchors, direction)
        own = [of_table(data, name) for name in table_names(data)]
        return [_arguments(table, settings, whole["anchors"], direction) for table in own] or [
            whole
        ]

    def columns(data: Data, settings: EncodingConfig, anchors: Tensor | None) -> Tensor:
        parts = [katz(**each, cache=True) for each in given(data, settings, anchors)]
        return parts[0] if len(parts) == 1 else beside(parts)

    def rows(data: Data, settings: EncodingConfig) -> list[segments.CachedRows]:
        return [katz_rows(**each) for each in given(data, settings, None)]

    return Encoding(
        columns=columns,
        carries_over="anchors",
        direction="unused" if direction == "both" else "needed",
        rows=rows,
        tuned=tuned,
    )


KATZ = _encoding("both", tuned=True)
OUT = _encoding("out")
IN = _encoding("in")
