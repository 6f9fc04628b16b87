"""NodeSort as a function and as a PyG transform."""

from collections.abc import Sequence
from hashlib import sha256

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from dgt.config import CRITERIA, DEFAULT_CRITERIA, CriterionChoice, SequenceConfig
from dgt.data.direction import DIRECTED
from dgt.data.matrices import require_graph
from dgt.errors import InputError
from dgt.sequences.make import make_sequences


def node_sequences(
    data: Data,
    criteria: Sequence[CriterionChoice] = DEFAULT_CRITERIA,
    length: int = SequenceConfig.length,
    ppr_alpha: float = SequenceConfig.ppr_alpha,
    ppr_tolerance: float | None = SequenceConfig.ppr_tolerance,
    spacing: str = SequenceConfig.spacing,
    progress: bool = False,
    cache: bool = False,
) -> Tensor:
    r"""Computes, for every criterion :math:`\pi` and base node :math:`v_b`, the first :math:`L`
    nodes of

    .. math::
        S_{\pi b} = \text{NodeSort}_\pi(\mathcal{G}, v_b, \{\mathbf{x}_i\}_{i=1}^N)

    The base node comes first. A node that reaches fewer than :math:`L` nodes has a shorter
    sequence, padded with -1. An absolute criterion has the same sequence for every base node.

    Args:
        data: A graph. Edges are treated as undirected, and self-loops are ignored. Criteria along
            links follow ``data.directed_edge_index``.
        criteria: Names in ``CRITERIA``, such as ``"bfs"`` (by hop, then by descending degree),
            ``"ppr"`` (personalized PageRank) or ``"similarity"`` (cosine similarity of the
            features), or functions of ``data`` and ``length`` that return node indices of shape
            ``(N, L)``.
        length: Length L of the sequences.
        ppr_alpha: Teleport probability of the personalized PageRank.
        ppr_tolerance: Residual per edge at which the PageRank push stops. Smaller values are more
            exact and slower (default: :func:`dgt.sequences.ppr.default_tolerance`).
        spacing: With ``"rank"``, each node takes one position. With ``"score"``, each node takes a
            share of the positions in proportion to its score, see
            :func:`dgt.sequences.spacing.space_by_score`.
        progress: Show a progress bar.
        cache: Read the sequences from the cache, and write them to it. Those of functions are
            never cached.

    Returns:
        Node indices, int32 ``(T, N, L)``.
    """
    transform = NodeSort(
        criteria, length, ppr_alpha, ppr_tolerance, spacing, progress=progress, cache=cache
    )
    require_graph(data)
    return make_sequences(data, transform.criteria, transform.settings, progress, cache)


def current_sequences(data: Data) -> Tensor:
    """Returns the sequences that :class:`NodeSort` added to a graph.

    Args:
        data: A graph, possibly after further operations of PyG.

    Returns:
        Node indices, int32 ``(T, N, L)``.

    Raises:
        ValueError: If the graph has no sequences, or if its nodes or undirected edges have changed
            since they were computed.
    """
    parts = ("sequences", "sequence_nodes", "sequence_edges")
    if any(getattr(data, name, None) is None for name in parts):
        raise ValueError("data has no sequences from NodeSort; apply NodeSort first")
    N, nodes = data.num_nodes, data.sequence_nodes
    same_nodes = data.sequences.size(1) == N and torch.equal(
        nodes, torch.arange(N, device=nodes.device)
    )
    current = _edge_hash(data, directed=len(data.sequence_edges) > 1)
    if not same_nodes or not torch.equal(data.sequence_edges.cpu(), current):
        changed = "edges" if same_nodes else "nodes"
        raise ValueError(
            f"data.sequences are stale: the {changed} have changed since NodeSort computed them; "
            "apply NodeSort again"
        )
    return data.sequences


def _edge_hash(data: Data, directed: bool = False) -> Tensor:
    """Hashes the undirected edges; their order, direction and multiplicity and self-loops do not
    matter. Shape: ``(1,)``. With ``directed``, also the directed edges. Shape: ``(2,)``."""
    undirected, links = data.edge_index, data.get(DIRECTED)
    found = [None if undirected is None else undirected.detach().cpu().long().sort(dim=0).values]
    found += [None if links is None else links.detach().cpu().long()] if directed else []
    return torch.tensor([_hash(edges, data.num_nodes) for edges in found])


def _hash(edges: Tensor | None, num_nodes: int) -> int:
    if edges is None:
        return 0
    pairs = (edges[0] * num_nodes + edges[1])[edges[0] != edges[1]].unique()
    digest = sha256(pairs.numpy().tobytes()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


class NodeSort(BaseTransform):
    """A PyG transform that sets ``data.sequences``, int32 ``(T, N, L)``, to the result of
    :func:`node_sequences`.

    Sequences belong to the nodes and edges that they were computed from. PyG's operations that
    select, reorder or join nodes (``data.subgraph``, ``Batch.from_data_list`` and loaders) do not
    update them, so apply this transform to their result. To detect stale sequences, the transform
    also sets ``data.sequence_nodes``, the index of each node, which PyG selects and joins with the
    other attributes of nodes, and ``data.sequence_edges``, a hash of the edges.
    :func:`current_sequences` returns the sequences only if both still match. A model by itself can
    only refuse sequences of another number of nodes.

    Args:
        criteria: Names or functions, as for :func:`node_sequences`.
        length: Length L of the sequences.
        ppr_alpha: Teleport probability of the personalized PageRank.
        ppr_tolerance: Residual per edge at which the PageRank push stops. Smaller values are more
            exact and slower (default: :func:`dgt.sequences.ppr.default_tolerance`).
        spacing: ``"rank"`` or ``"score"``.
        progress: Show a progress bar.
        cache: Read the sequences from the cache, and write them to it.
    """

    def __init__(
        self,
        criteria: Sequence[CriterionChoice] = DEFAULT_CRITERIA,
        length: int = SequenceConfig.length,
        ppr_alpha: float = SequenceConfig.ppr_alpha,
        ppr_tolerance: float | None = SequenceConfig.ppr_tolerance,
        spacing: str = SequenceConfig.spacing,
        progress: bool = False,
        cache: bool = False,
    ) -> None:
        if isinstance(criteria, str) or callable(criteria):
            criteria = (criteria,)
        if not isinstance(criteria, Sequence):
            raise InputError(f"criteria: got {criteria!r}, expected names or functions")
        self.criteria = tuple(criteria)
        self.settings = SequenceConfig(
            criteria=self.criteria,
            length=length,
            ppr_alpha=ppr_alpha,
            ppr_tolerance=ppr_tolerance,
            spacing=spacing,  # type: ignore[arg-type]
        )
        self.progress = progress
        self.cache = cache

    def forward(self, data: Data) -> Data:
        require_graph(data)
        data.sequences = make_sequences(
            data, self.criteria, self.settings, self.progress, self.cache
        )
        data.sequence_nodes = torch.arange(data.num_nodes)
        reads = [CRITERIA.record(criterion).reads for criterion in self.criteria]
        data.sequence_edges = _edge_hash(data, directed=any(DIRECTED in each for each in reads))
        return data

    def __repr__(self) -> str:
        # PyG compares it to decide whether processed files are outdated, so progress and cache
        # are not part of it.
        names = ", ".join(CRITERIA.name(criterion) for criterion in self.criteria)
        return (
            f"{type(self).__name__}([{names}], length={self.settings.length}, "
            f"ppr_alpha={self.settings.ppr_alpha}, ppr_tolerance={self.settings.ppr_tolerance}, "
            f"spacing={self.settings.spacing!r})"
        )
