"""Functions of the user as encodings, and the check of their results."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import EncodingConfig
from dgt.encodings.encoding import Encoding
from dgt.errors import InputError


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
    given = function(data)
    if isinstance(given, Tensor):
        given = given.detach().cpu().to_dense().numpy()
    elif scipy.sparse.issparse(given):
        given = given.toarray()
    columns = np.asarray(given)
    if columns.dtype.kind not in "fiub":
        raise InputError(f"{place}: returned {columns.dtype}, expected numbers")
    if columns.ndim != 2 or len(columns) != data.num_nodes or columns.shape[1] == 0:
        raise InputError(
            f"{place}: returned shape {columns.shape}, expected ({data.num_nodes}, columns)"
        )
    columns = columns.astype(np.float32)
    if not np.isfinite(columns).all():
        row, column = np.argwhere(~np.isfinite(columns))[0]
        raise InputError(
            f"{place}: row {row}, column {column} is {columns[row, column]}, expected a finite "
            "number"
        )
    return torch.from_numpy(columns)
