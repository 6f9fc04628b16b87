"""Functions of the user as criteria, and the check of their results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from dgt.config import SequenceConfig
from dgt.data.tensors import plain
from dgt.errors import InputError
from dgt.sequences.criterion import Criterion, Graph, Sort
from dgt.storage.segments import Advance
from dgt.system.plugins import call


def custom_criterion(name: str, function: Callable[[Data, int], Any]) -> Criterion:
    """Makes a criterion of a function of the data and the length L.

    Its sequences are never cached: only the author knows what they depend on.
    """

    def begin(graph: Graph, settings: SequenceConfig, folder: Path | None) -> Sort:
        sequences = custom_sequences(name, function, graph.data, settings.length)

        def sort(bases: range, advance: Advance) -> tuple[np.ndarray, None]:
            advance(len(bases))
            return sequences[bases.start : bases.stop], None

        return sort

    return Criterion(begin=begin, cached=False)


def custom_sequences(
    name: str, function: Callable[[Data, int], Any], data: Data, length: int
) -> np.ndarray:
    """Calls ``function(data, length)`` and checks the result.

    Returns:
        int32 ``(N, L)``.
    """
    place = f"criterion {name}"
    given = call(place, function, data, length)
    return check_sequences(place, given, range(data.num_nodes), data.num_nodes, length)


def check_sort(place: str, sort: Any, num_nodes: int, length: int) -> Sort:
    """Returns a function like ``sort``, of a record of the user, that checks every result."""
    if not callable(sort):
        raise InputError(f"{place}: begin returned {type(sort).__name__}, expected a function")

    def checked(bases: range, advance: Advance) -> tuple[np.ndarray, np.ndarray | None]:
        found = call(place, sort, bases, advance)
        if not isinstance(found, tuple) or len(found) != 2:
            kind = type(found).__name__
            raise InputError(f"{place}: returned {kind}, expected a pair of sequences and scores")
        sequences = check_sequences(place, found[0], bases, num_nodes, length)
        if found[1] is None:
            return sequences, None
        scores = plain(found[1], f"{place}: scores").numpy().astype(np.float32)
        if scores.shape != sequences.shape:
            raise InputError(
                f"{place}: returned scores of shape {scores.shape}, expected {sequences.shape}"
            )
        if not (np.isfinite(scores) & (scores > 0))[sequences >= 0].all():
            raise InputError(f"{place}: returned scores that are not positive numbers")
        return sequences, scores

    return checked


def check_sequences(
    place: str, given: Any, bases: range, num_nodes: int, length: int
) -> np.ndarray:
    """Checks the sequences of some base nodes.

    Each row must start with its own node, contain no node twice, and be padded with -1 at the end.

    Returns:
        int32 ``(bases, L)``.
    """
    sequences = plain(given, place).numpy()
    if sequences.shape != (len(bases), length):
        raise InputError(
            f"{place}: returned shape {sequences.shape}, expected ({len(bases)}, {length})"
        )
    if sequences.dtype != np.int64:
        raise InputError(f"{place}: returned {sequences.dtype}, expected integers")

    def refuse(wrong: np.ndarray, expected: str) -> None:
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise InputError(
                f"{place}: row {row}, column {column} is {sequences[row, column]}, expected "
                f"{expected}"
            )

    refuse((sequences < -1) | (sequences >= num_nodes), f"-1 or a node below {num_nodes}")
    refuse(sequences[:, :1] != np.array(bases)[:, None], "the row's own node first")
    after_padding = np.zeros(sequences.shape, dtype=bool)
    after_padding[:, 1:] = (sequences[:, 1:] >= 0) & (sequences[:, :-1] < 0)
    refuse(after_padding, "-1, as before it")
    order = np.argsort(sequences, axis=1, kind="stable")
    ordered = np.take_along_axis(sequences, order, axis=1)
    again = np.zeros(sequences.shape, dtype=bool)
    np.put_along_axis(
        again, order[:, 1:], (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0), axis=1
    )
    refuse(again, "no node twice in a row")
    return sequences.astype(np.int32)
