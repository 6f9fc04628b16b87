"""Changes to a graph or a model that the user tries out."""

from dataclasses import dataclass, field

import numpy as np
import scipy.sparse

from dgt.errors import InputError
from dgt.explore.checks import Asked
from dgt.explore.session import Session
from dgt.explore.trace import Key
from dgt.nn import DGT, DGTPlus

MOST_EDITS = 50
KINDS = ("edge", "node", "criterion", "feature", "key")


@dataclass
class Edits:
    """All changes that are tried out together."""

    edges: list[tuple[int, int]] = field(default_factory=list)
    """Hidden edges."""
    nodes: set[int] = field(default_factory=set)
    """Hidden nodes."""
    criteria: set[int] = field(default_factory=set)
    """Hidden criteria."""
    features: dict[tuple[int, int], float] = field(default_factory=dict)
    """New values by node and column."""
    keys: dict[Key, float] = field(default_factory=dict)
    """New positions of keys of the node that is looked at."""

    @property
    def of_graph(self) -> bool:
        return bool(self.edges or self.nodes)

    @property
    def of_features(self) -> bool:
        return bool(self.features or self.nodes)

    @classmethod
    def of(cls, session: Session, node: int, asked: list[Asked]) -> "Edits":
        """Reads and checks changes.

        Args:
            session: The run.
            node: The node that is looked at. It cannot be hidden.
            asked: The changes. Each has a ``kind``.
        """
        edits = cls()
        for one in asked:
            _ADD[one.choice("kind", KINDS)](edits, session, node, one)
            one.done()
        return edits


def _add_edge(edits: Edits, session: Session, node: int, one: Asked) -> None:
    last = session.num_nodes - 1
    a, b = one.integer("a", 0, last), one.integer("b", 0, last)
    if _entry(session.adjacency, a, b) is None:
        raise InputError(f"edge: got {a} and {b}, expected two nodes with an edge between them")
    edits.edges.append((a, b))


def _add_node(edits: Edits, session: Session, node: int, one: Asked) -> None:
    hidden = one.integer("node", 0, session.num_nodes - 1)
    if hidden == node:
        raise InputError("node: the node whose prediction is shown cannot be hidden")
    edits.nodes.add(hidden)


def _add_criterion(edits: Edits, session: Session, node: int, one: Asked) -> None:
    _require_sequences(session, "criterion")
    edits.criteria.add(one.integer("criterion", 0, len(session.config.criteria) - 1))


def _add_feature(edits: Edits, session: Session, node: int, one: Asked) -> None:
    at = one.integer("node", 0, session.num_nodes - 1)
    column = one.integer("column", 0, len(session.feature_names) - 1)
    edits.features[at, column] = one.number("value")


def _add_key(edits: Edits, session: Session, node: int, one: Asked) -> None:
    model = _require_sequences(session, "key")
    config = session.config
    key = Key(
        one.integer("block", 0, len(model.blocks) - 1),
        one.integer("criterion", 0, len(config.criteria) - 1),
        one.integer("head", 0, config.model.heads - 1),
        one.integer("key", 0, config.model.keys - 1),
    )
    edits.keys[key] = one.number("position", 0, config.sequences.length - 1)


_ADD = dict(zip(KINDS, (_add_edge, _add_node, _add_criterion, _add_feature, _add_key), strict=True))


def _require_sequences(session: Session, kind: str) -> DGT | DGTPlus:
    model = session.inside.model
    if not isinstance(model, DGT | DGTPlus):
        raise InputError(f"{kind}: {session.config.model.model} has no sequences and no keys")
    return model


def without(
    A: scipy.sparse.csr_array, edges: list[tuple[int, int]], nodes: set[int]
) -> scipy.sparse.csr_array:
    """Returns an adjacency matrix without some edges, and without all edges of some nodes."""
    if not edges and not nodes:
        return A
    gone = [*edges]
    for node in nodes:
        gone += [(node, int(n)) for n in A.indices[A.indptr[node] : A.indptr[node + 1]]]
    kept = np.ones(len(A.indices), dtype=bool)
    for a, b in gone:
        for at in (_entry(A, a, b), _entry(A, b, a)):
            if at is not None:
                kept[at] = False
    before = np.concatenate([[0], np.cumsum(kept)])
    indptr = before[A.indptr].astype(A.indptr.dtype)
    return scipy.sparse.csr_array((A.data[kept], A.indices[kept], indptr), A.shape)


def _entry(A: scipy.sparse.csr_array, a: int, b: int) -> int | None:
    """Returns the place of an edge among the entries of the matrix, if it is there."""
    start, stop = int(A.indptr[a]), int(A.indptr[a + 1])
    at = start + int(np.searchsorted(A.indices[start:stop], b))
    return at if at < stop and A.indices[at] == b else None
