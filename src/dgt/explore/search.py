"""Finds nodes by id, label, prediction, mistake, uncertainty or attribute."""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dgt.data.splits import PARTS
from dgt.errors import InputError
from dgt.explore.checks import Asked
from dgt.explore.facts import brief
from dgt.explore.session import NO_PART, Session

PAGE = 50
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
ORDERS: dict[str, Callable[[Session], np.ndarray | None]] = {
    "order": lambda session: None,
    "least sure": lambda session: session.confidence,
    "most sure": lambda session: -session.confidence,
    "highest degree": lambda session: -session.degrees,
    "lowest degree": lambda session: session.degrees,
}
"""The values that results are sorted by, ascending. ``order`` is the graph's own."""
DEGREE = "degree"


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What a node must meet to be found."""

    text: str = ""
    """Part of the id, in upper or lower case."""
    label: int | None = None
    """A class, or -1 for nodes without a label."""
    prediction: int | None = None
    part: str = ""
    mistakes: bool = False
    column: int | None = None
    """A column of the features, or -1 for the degree."""
    comparison: str = "="
    value: float = 0.0
    order: str = "order"

    @classmethod
    def of(cls, session: Session, asked: Asked) -> "Filter":
        """Reads and checks a filter."""
        classes = len(session.inside.facts.class_names)
        attribute = asked.text("attribute", "")
        return cls(
            text=asked.text("text", ""),
            label=asked.optional("label", -1, classes - 1),
            prediction=asked.optional("prediction", 0, classes - 1),
            part=asked.choice("part", ["", *PARTS, "none"], ""),
            mistakes=asked.choice("mistakes", ["", "0", "1"], "") == "1",
            column=_column(session, attribute) if attribute else None,
            comparison=asked.choice("comparison", OPERATORS, "="),
            value=_value(asked, attribute),
            order=asked.choice("order", ORDERS, "order"),
        )


def _value(asked: Asked, attribute: str) -> float:
    if attribute:
        return asked.number("value")
    asked.text("value", "")  # has no meaning without an attribute
    return 0.0


def _column(session: Session, attribute: str) -> int:
    if attribute == DEGREE:
        return -1
    try:
        return session.feature_names.index(attribute)
    except ValueError:
        named = ", ".join(repr(name[:40]) for name in session.feature_names[:3])
        raise InputError(
            f"attribute: got {attribute[:60]!r}, expected degree or a column, such as {named}"
        ) from None


def search(session: Session, asked: Filter, start: int = 0) -> dict[str, Any]:
    """Returns a page of the nodes that meet a filter, and their total number."""
    fits = np.ones(session.num_nodes, dtype=bool)
    if asked.label is not None:
        fits &= session.labels == asked.label
    if asked.prediction is not None:
        fits &= session.predictions == asked.prediction
    if asked.part:
        fits &= session.parts == ([*PARTS, "none"].index(asked.part))
    if asked.mistakes:
        fits &= (session.labels >= 0) & (session.labels != session.predictions)
    if asked.column is not None:
        fits &= OPERATORS[asked.comparison](_values(session, asked.column), asked.value)
    found = np.flatnonzero(fits)
    if asked.text:
        found = _with_text(session, found, asked.text)
    by = ORDERS[asked.order](session)
    if by is not None:
        found = found[np.argsort(by[found], kind="stable")]
    elif asked.text:
        found = _exact_first(session, found, asked.text)
    page = found[start : start + PAGE].tolist()
    facts = brief(session, page)
    return {
        "total": len(found),
        "start": start,
        "found": [{"node": n, **facts[n], "part": _part(session, n)} for n in page],
    }


def _values(session: Session, column: int) -> np.ndarray:
    return session.degrees if column < 0 else session.inside.data.x[:, column].numpy()


def _part(session: Session, node: int) -> str | None:
    part = session.parts[node]
    return None if part == NO_PART else PARTS[part]


def _with_text(session: Session, nodes: np.ndarray, text: str) -> np.ndarray:
    ids, lowered = session.inside.ids, text.lower()
    return np.array([n for n in nodes.tolist() if lowered in str(ids[n]).lower()], dtype=np.int64)


def _exact_first(session: Session, nodes: np.ndarray, text: str) -> np.ndarray:
    exact = session.find(text)
    if exact is None or exact not in nodes:
        return nodes
    return np.concatenate([[exact], nodes[nodes != exact]])
