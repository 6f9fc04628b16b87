"""Functions of the user as criteria, and the check of their results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from dgt.config import SequenceConfig
from dgt.errors import InputError
from dgt.sequences.criterion import Criterion, Graph, Sort
from dgt.storage.segments import Advance


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

    Each row must start with its own node, contain no node twice, and be padded with -1 at the end.

    Returns:
        int32 ``(N, L)``.
    """
    place = f"criterion {name}"
    given = function(data, length)
    sequences = given.cpu().numpy() if isinstance(given, torch.Tensor) else np.asarray(given)
    num_nodes = data.num_nodes
    if sequences.shape != (num_nodes, length):
        raise InputError(
            f"{place}: returned shape {sequences.shape}, expected ({num_nodes}, {length})"
        )
    if sequences.dtype.kind not in "iu":
        raise InputError(f"{place}: returned {sequences.dtype}, expected integers")
    sequences = sequences.astype(np.int64)

    def refuse(wrong: np.ndarray, expected: str) -> None:
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise InputError(
                f"{place}: row {row}, column {column} is {sequences[row, column]}, expected "
                f"{expected}"
            )

    refuse((sequences < -1) | (sequences >= num_nodes), f"-1 or a node below {num_nodes}")
    refuse(sequences[:, :1] != np.arange(num_nodes)[:, None], "the row's own node first")
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
