"""Functions of the user as encodings, and the check of their results."""

from collections.abc import Callable
from typing import Any

import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import EncodingConfig
from dgt.data.tensors import plain
from dgt.encodings.encoding import Encoding
from dgt.errors import InputError
from dgt.system.plugins import call


def custom_encoding(name: str, function: Callable[[Data], Any]) -> Encoding:
    """Makes an encoding of a function of the data.

    The trained model can only be used on the graph that it was trained on, since only the author
    knows whether the columns carry over to another graph. Register an :class:`Encoding` to state
    that they do.
    """

    def columns(data: Data, settings: EncodingConfig, anchors: Tensor | None) -> Tensor:
        return custom_columns(name, function, data)

    return Encoding(columns=columns, carries_over="edges")


def custom_columns(name: str, function: Callable[[Data], Any], data: Data) -> Tensor:
    """Calls ``function(data)`` and checks the result.

    Returns:
        Finite columns, float32 ``(N, N')``.
    """
    place = f"encoding {name}"
    return check_columns(place, call(place, function, data), data.num_nodes)


def check_columns(place: str, given: Any, num_nodes: int) -> Tensor:
    """Checks the columns of an encoding of the user.

    Returns:
        Finite columns, float32 ``(N, N')``.
    """
    if scipy.sparse.issparse(given):
        given = given.toarray()
    columns = plain(given, place, sparse=True)
    if columns.dim() != 2 or len(columns) != num_nodes or columns.size(1) == 0:
        shape = tuple(columns.shape)
        raise InputError(f"{place}: returned shape {shape}, expected ({num_nodes}, columns)")
    narrow = columns.to(torch.float32)
    if not bool(narrow.isfinite().all()):
        row, column = (~narrow.isfinite()).nonzero()[0].tolist()
        raise InputError(
            f"{place}: row {row}, column {column} is {columns[row, column].item()}, expected a "
            "finite number"
        )
    return narrow.contiguous()
