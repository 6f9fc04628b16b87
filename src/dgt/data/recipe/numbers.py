"""The features of tables that consist of numbers only, before they are scaled."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data.recipe import lists, parse
from dgt.data.recipe.recipe import column_kinds
from dgt.data.recipe.table import cells, has_table

_READ = {"number": parse.numbers, "boolean": parse.booleans, "list": lists.list_numbers}


def add_numbers(data: Data) -> None:
    """Sets ``data.x`` to the numbers of a table, if all of its columns are complete columns of
    numbers, or its only column is one of lists. Also checks the values of all columns."""
    x, names = table_numbers(data)
    if x is not None:
        data.x = x
        if names:
            data.feature_names = names


def table_numbers(data: Data) -> tuple[Tensor | None, list[str]]:
    """Returns the numbers of a table, float32 ``(N, F)``, and the names of its columns.

    Without a table, or if it does not consist of numbers only, the first value is None.
    """
    if not has_table(data):
        return None, []
    kinds = column_kinds(data, DataConfig())
    names = [name for name in data.table.columns if name in kinds]  # in the order of the file
    parts = []
    for name in names:
        found, kind = cells(data, name), kinds[name][0]
        if kind not in _READ or (found.codes < 0).any() or (kind == "list" and len(names) > 1):
            return None, []
        if kind == "list" and lists.are_lists_of_words(found):
            return None, []
        parts.append(_READ[kind](found)[found.codes])
    if not parts:
        return None, []
    x = torch.from_numpy(np.column_stack(parts).astype(np.float32))
    if not bool(x.isfinite().all()):
        return None, []
    return x, names if x.size(1) == len(names) else []


def from_table(data: Data) -> bool:
    """Returns whether the features of a graph are those of its table.

    They are not if the user has set other features after the table was read.
    """
    if not has_table(data):
        return False
    x = data.get("x")
    if x is None:
        return True
    if x.layout != torch.strided:  # columns of a table are dense
        return False
    own, _ = table_numbers(data)
    return own is not None and own.shape == x.shape and torch.equal(own, x.cpu().float())
