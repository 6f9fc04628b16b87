"""The inputs of a model after changes to its graph, for the few nodes that a prediction needs."""

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import CRITERIA, ENCODINGS
from dgt.data.direction import DIRECTED, DIRECTED_WEIGHTS, is_directed
from dgt.data.matrices import scaled_rows
from dgt.encodings.katz import katz_of
from dgt.encodings.make import carries_over, make_columns
from dgt.explore.edits import Edits, without
from dgt.explore.session import Session
from dgt.explore.trace import Inputs, embed
from dgt.nn import DGT, DGTPlus
from dgt.ops.sparse import gather_rows
from dgt.sequences.criterion import Graph
from dgt.sequences.make import sequence_rows

# Up to this number of nodes, inputs that need a look at all nodes are computed again.
FEW_NODES = 20_000


def changed_graph(session: Session, edits: Edits) -> Graph:
    """Returns the graph after the changes. A hidden node has no edges and no features."""
    data = copy(session.inside.data)
    A = without(session.adjacency, edits.edges, edits.nodes)
    if edits.of_graph:
        row = np.repeat(np.arange(session.num_nodes), np.diff(A.indptr))
        data.edge_index = torch.from_numpy(np.stack([row, A.indices.astype(np.int64)]))
        _keep_links(data, A)
    if edits.of_features:
        data.x = data.x.clone()
    for node in edits.nodes:
        data.x[node] = 0
    for (node, column), value in edits.features.items():
        data.x[node, column] = value
    graph = Graph(data)
    graph.adjacency = A
    return graph


def _keep_links(data: Data, A: scipy.sparse.csr_array) -> None:
    """Leaves out the directed edges, and their weights, that the adjacency matrix does not have."""
    if is_directed(data):
        N, (source, target) = data.num_nodes, data[DIRECTED]
        row = np.repeat(np.arange(N), np.diff(A.indptr))
        kept = np.isin(source.numpy() * N + target.numpy(), row * N + A.indices.astype(np.int64))
        data[DIRECTED] = data[DIRECTED][:, kept]
        if data.get(DIRECTED_WEIGHTS) is not None:
            data[DIRECTED_WEIGHTS] = data[DIRECTED_WEIGHTS][kept]


class ChangedInputs(Inputs):
    """The inputs of a Deformable Graph Transformer after changes.

    Args:
        session: The run.
        edits: The changes.
        node: The node that is looked at, whose own label is hidden.

    Attributes:
        held: Sentences that say what was not computed again.
    """

    def __init__(self, session: Session, edits: Edits, node: int) -> None:
        super().__init__(session.inputs_of(node))
        self.session = session
        self.edits = edits
        self.few = session.num_nodes <= FEW_NODES
        self.held: list[str] = []
        self._note_held()

    def read(self, nodes: Tensor) -> tuple[Tensor, Tensor | None]:
        sequences, closeness = super().read(nodes)  # (T, Q, L)
        sequences = sequences.clone()
        closeness = None if closeness is None else closeness.clone()
        for t in self._sorted_again:
            rows = self._rows[t]
            made = [rows.make(n, n + 1, lambda done: None) for n in nodes.tolist()]
            sequences[t] = torch.from_numpy(np.concatenate([each[0] for each in made]))
            if closeness is not None:
                closeness[t] = torch.from_numpy(np.concatenate([each[1] for each in made]))
        if self.edits.nodes:
            sequences, closeness = _take_out(sequences, closeness, self.edits.nodes)
        for t in self.edits.criteria:
            sequences[t] = -1
        return sequences, closeness

    def embed(self, model: DGT | DGTPlus, nodes: Tensor) -> Tensor:
        x, encoding = gather_rows(self.given["x"], nodes), self._encoding(nodes)
        z = embed(model, x, self.labels(nodes), encoding)
        own = self._changed_rows(nodes)
        if len(own):
            rows = None if encoding is None else gather_rows(encoding, own)
            z[own] = embed(model, self._features(nodes[own]), self.labels(nodes[own]), rows)
        return z

    def _changed_rows(self, nodes: Tensor) -> Tensor:
        """Returns the rows of ``nodes`` whose features have changed."""
        changed = {node for node, _ in self.edits.features}
        return torch.tensor(
            [i for i, n in enumerate(nodes.tolist()) if n in changed], dtype=torch.int64
        )

    def _features(self, nodes: Tensor) -> Tensor:
        """Returns the changed features of some nodes. Shape: ``(Q, F)``."""
        x = self.session.inside.data.x[nodes].numpy().copy()
        for i, node in enumerate(nodes.tolist()):
            for (changed, column), value in self.edits.features.items():
                if changed == node:
                    x[i, column] = value
        scaled = scaled_rows(x, self.session.config.model.feature_scaling)
        return torch.from_numpy(scaled).to(self.given["x"].dtype)

    def _encoding(self, nodes: Tensor) -> Tensor | None:
        encoding = self.given["encoding"]
        if encoding is None or not self.edits.of_graph or not self._encodes_again:
            return None if encoding is None else gather_rows(encoding, nodes)
        config, anchors = self.session.config, self.session.anchors
        if anchors is not None and config.encoding.encodings == ("katz",):
            made = katz_of(self._graph.adjacency, nodes.numpy(), config.encoding, anchors)
            return made.to(encoding.dtype)
        columns, _ = make_columns(self._graph.data, config.encoding, anchors)
        assert columns is not None
        return gather_rows(columns.to(encoding.dtype), nodes)

    @cached_property
    def _encodes_again(self) -> bool:
        settings = self.session.config.encoding
        return settings.encodings == ("katz",) or (self.few and carries_over(settings) != "edges")

    @cached_property
    def _graph(self) -> Graph:
        return changed_graph(self.session, self.edits)

    @cached_property
    def _rows(self) -> list[Any]:
        config = self.session.config
        scored = "closeness" in self.given
        chosen = (config.criteria, config.sequences)
        return sequence_rows(self._graph.data, *chosen, graph=self._graph, scored=scored)

    @cached_property
    def _sorted_again(self) -> list[int]:
        """The criteria whose sequences are computed again."""
        found = []
        for t, criterion in enumerate(self.session.config.criteria):
            record = CRITERIA.record(criterion)
            edges = self.edits.of_graph and not {"edge_index", DIRECTED}.isdisjoint(record.reads)
            features = self.edits.of_features and "x" in record.reads and self.few
            if edges or features:
                found.append(t)
        return found

    def _note_held(self) -> None:
        config, edits = self.session.config, self.edits
        encoding = ", ".join(ENCODINGS.name(each) for each in config.encoding.encodings)
        if self.given["encoding"] is not None and edits.of_graph and not self._encodes_again:
            self.held.append(f"The {encoding} encoding is that of the unchanged graph.")
        for t, criterion in enumerate(config.criteria):
            record = CRITERIA.record(criterion)
            if edits.of_features and "x" in record.reads and t not in self._sorted_again:
                self.held.append(
                    f"The order by {CRITERIA.name(criterion)} is that of the unchanged features: "
                    f"on more than {FEW_NODES:,} nodes it is not computed again."
                )


def _take_out(
    sequences: Tensor, closeness: Tensor | None, hidden: set[int]
) -> tuple[Tensor, Tensor | None]:
    """Takes nodes out of sequences; those that follow move up. Shape: ``(T, Q, L)``."""
    away = torch.isin(sequences, torch.tensor(sorted(hidden), dtype=sequences.dtype))
    order = away.to(torch.int8).argsort(dim=-1, stable=True)
    kept = sequences.masked_fill(away, -1).gather(-1, order)
    if closeness is None:
        return kept, None
    return kept, closeness.masked_fill(away, 0.0).gather(-1, order)
