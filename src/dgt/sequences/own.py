"""Sequences by a user's own criterion, checked."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from dgt.errors import InputError


def own_sequences(criterion: Callable[[Data, int], Any], data: Data, length: int) -> np.ndarray:
    """What ``criterion(data, length)`` returns, as integers [N, L].

    Each row must begin with its own node and name no node twice; -1 fills it at the end.
    """
    name = f"criterion {getattr(criterion, '__qualname__', criterion)}"
    given = criterion(data, length)
    sequences = given.cpu().numpy() if isinstance(given, torch.Tensor) else np.asarray(given)
    num_nodes = data.num_nodes
    if sequences.shape != (num_nodes, length):
        raise InputError(
            f"{name}: returned shape {list(sequences.shape)}, expected [{num_nodes}, {length}]"
        )
    if sequences.dtype.kind not in "iu":
        raise InputError(f"{name}: returned {sequences.dtype}, expected integers")
    sequences = sequences.astype(np.int64)

    def refuse(wrong: np.ndarray, expected: str) -> None:
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise InputError(
                f"{name}: row {row}, column {column} is {sequences[row, column]}, expected "
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
    return sequences
