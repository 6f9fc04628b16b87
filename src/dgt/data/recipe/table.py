"""The columns of a node table as they were read, before they become features.

What becomes of a column is only known when the training nodes are, so a graph carries its table:
``data.table`` holds the distinct values of each column, and ``data.table_cells``, int32 ``(N, C)``,
the index of each node's value, -1 for a missing cell. The cells are a tensor with a row per node,
so PyG's operations that select nodes keep both in step. ``data.table_rows``, int32 ``(N,)``, is the
row of each node in the file, for error messages.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.errors import InputError
from dgt.system.notes import note_once


@dataclass(frozen=True)
class Column:
    """The distinct values of a column."""

    name: str
    values: pa.Array = field(repr=False)
    """Distinct values as read, without missing ones."""
    typed: bool
    """Whether the file distinguishes numbers from strings."""


@dataclass(frozen=True)
class Table:
    """The columns of a node table, and where they come from."""

    name: str
    """Name of the file in error messages."""
    columns: dict[str, Column]
    """The columns by name, in the order of ``data.table_cells``."""
    place: Callable[[int], str] = field(repr=False)
    """Describes the place of a row, given its index, as in "row 7"."""
    roles: dict[str, str] = field(default_factory=dict)
    """What each column that is not a feature is used for, such as "label"."""
    chosen: dict[str, str] = field(default_factory=dict)
    """Kinds of columns that were set when the table was read."""
    inferred: dict[str, tuple[str, str]] = field(default_factory=dict, repr=False)
    """Kinds of columns as inferred so far, with a remark for a column that is ignored."""

    def features(self) -> list[str]:
        """Returns the names of the columns that have no other role, sorted."""
        return sorted(name for name in self.columns if name not in self.roles)


@dataclass(frozen=True)
class Cells:
    """One column of some nodes."""

    column: Column
    codes: np.ndarray = field(repr=False)
    """Index of each node's value, -1 for a missing cell. Shape: ``(N,)``."""
    rows: np.ndarray = field(repr=False)
    """Row of each node in the file. Shape: ``(N,)``."""
    table: Table = field(repr=False)

    def error(self, value: int, expected: str, found: str | None = None) -> InputError:
        """Returns the error for a value, given its index, at the first node that has it."""
        nodes = np.flatnonzero(self.codes == value)
        at = f"{self.table.place(int(self.rows[nodes].min()))}, " if len(nodes) else ""
        found = repr(self.column.values[value].as_py()) if found is None else found
        return InputError(
            f"{self.table.name}: {at}column {self.column.name!r}: got {found}, expected {expected}"
        )

    def counts(self) -> np.ndarray:
        """Returns the number of nodes with each distinct value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.column.values))

    def of(self, nodes: Tensor) -> "Cells":
        """Returns the column of some of the nodes, given as a mask."""
        chosen = nodes.numpy()
        return replace(self, codes=self.codes[chosen], rows=self.rows[chosen])


def add_table(
    data: Data,
    name: str,
    columns: dict[str, pa.ChunkedArray],
    place: Callable[[int], str],
    typed: bool,
    roles: dict[str, str],
    chosen: dict[str, str] | None = None,
) -> None:
    """Adds the columns of a node table to a graph, as described in this module."""
    encoded = {title: _encoded(cells) for title, cells in columns.items()}
    data.table = Table(
        name,
        {title: Column(title, values, typed) for title, (values, _) in encoded.items()},
        place,
        roles,
        chosen or {},
    )
    codes = [torch.from_numpy(codes) for _, codes in encoded.values()]
    data.table_cells = torch.stack(codes, dim=1)
    data.table_rows = torch.arange(data.table_cells.size(0), dtype=torch.int32)


def leave_out_labels(table: Table) -> None:
    """Leaves out a column that is called label if another column is used as the label.

    It is most likely another form of the label, which is not known for new nodes. It is only used
    as a feature if its kind is set.
    """
    used = next((name for name, role in table.roles.items() if role == "label"), None)
    for name in table.features():
        if used is not None and name.lower() == "label" and name not in table.chosen:
            table.inferred[name] = ("ignore", f"left out, since {used} is the label")
            note_once(
                f"{Path(table.name).name}: leaving out column {name!r}, since {used!r} is the "
                f"label; to use it as a feature, set its kind, such as --columns {name}=category"
            )


def has_table(data: Data) -> bool:
    """Returns whether a graph carries its node table."""
    return data.get("table") is not None and data.get("table_cells") is not None


def without_table(data: Data) -> Data:
    """Removes the node table from a graph, in place."""
    for key in ("table", "table_cells", "table_rows"):
        if key in data:
            del data[key]
    return data


def cells(data: Data, name: str) -> Cells:
    """Returns a column of a graph's table."""
    table: Table = data.table
    position = list(table.columns).index(name)
    codes, rows = data.table_cells[:, position].numpy(), data.table_rows.numpy()
    return Cells(table.columns[name], codes, rows, table)


def from_features(data: Data) -> None:
    """Adds a table of the named features of a graph without one."""
    numbers = {
        str(name): pa.chunked_array([pa.array(data.x[:, i].numpy())])
        for i, name in enumerate(data.feature_names)
    }
    add_table(data, data.name, numbers, "node {}".format, typed=True, roles={})


def _encoded(cells_: pa.ChunkedArray) -> tuple[pa.Array, np.ndarray]:
    """Returns the distinct values of a column and the index of each cell's value."""
    column = cells_.combine_chunks()
    if pa.types.is_null(column.type):
        return pa.array([], pa.string()), np.full(len(column), -1, dtype=np.int32)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    missing = pc.is_null(column).to_numpy(zero_copy_only=False)
    if is_text(column.type):
        missing |= pc.fill_null(pc.equal(column, ""), False).to_numpy(zero_copy_only=False)
    if pa.types.is_nested(column.type):  # Arrow cannot compare lists
        codes = np.cumsum(~missing, dtype=np.int32) - 1
        return column.filter(pa.array(~missing)), np.where(missing, -1, codes).astype(np.int32)
    column = pc.if_else(pa.array(missing), pa.scalar(None, column.type), column)
    encoded = column.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int32)
    return encoded.dictionary, codes


def is_text(kind: pa.DataType) -> bool:
    """Returns whether values of an Arrow type are strings."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)
