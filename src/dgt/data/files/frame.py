"""Reads CSV and Parquet files into named columns that know the place of each cell."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from dgt.data.files.csv_file import open_csv
from dgt.errors import InputError, nearest
from dgt.system import machine


@dataclass(frozen=True)
class Frame:
    """Named columns of equal length, and their source."""

    name: str
    """Name of the source in error messages."""
    columns: dict[str, pa.ChunkedArray]
    place: Callable[[int], str]
    """Describes the place of a row, given its index, as in "row 7"."""
    typed: bool
    """Whether the source distinguishes numbers from strings: Parquet does, CSV does not."""

    def error(self, row: int, column: str, value: object, expected: str) -> InputError:
        """Returns the error for an invalid cell."""
        found = "nothing" if value is None or value == "" else repr(value)
        return InputError(
            f"{self.name}: {self.place(row)}, column {column!r}: got {found}, expected {expected}"
        )


def read_frame(path: Path, required: tuple[str, ...]) -> Frame:
    """Reads a CSV or Parquet file. All columns of a CSV file are strings.

    Args:
        path: Path that ends with ``.csv`` or ``.parquet``.
        required: Columns that must exist.
    """
    try:
        return _csv(path, required) if path.suffix == ".csv" else _parquet(path, required)
    except (pa.ArrowException, OSError) as error:
        kind = "CSV" if path.suffix == ".csv" else "Parquet"
        raise InputError(f"{path}: not a readable {kind} file: {_line(error)}") from None


def _csv(path: Path, required: tuple[str, ...]) -> Frame:
    file = open_csv(path, required)
    _check_header(path, file.header, required)
    columns = dict(zip(file.header, file.table().columns, strict=True))
    return Frame(str(path), columns, file.place, typed=False)


def _parquet(path: Path, required: tuple[str, ...]) -> Frame:
    with pa.parquet.ParquetFile(path) as file:
        _check_header(path, file.schema_arrow.names, required)
        numbers = file.metadata.num_rows * file.metadata.num_columns
        # Repeated values take almost no space in the file.
        machine.require(4 * numbers, f"{path}: its content")
        table = file.read()
    columns = dict(zip(table.column_names, table.columns, strict=True))
    return Frame(str(path), columns, _row, typed=True)


def _row(row: int) -> str:
    return f"row {row + 1}"


def _check_header(path: Path, header: list[str], required: tuple[str, ...]) -> None:
    if not header:
        raise InputError(f"{path}: empty file, expected the columns {', '.join(required)}")
    before: set[str] = set()
    for position, name in enumerate(header, start=1):
        if name == "" or name.startswith("__index_level_"):
            raise InputError(
                f"{path}: column {position} has no name; if it is the index of a pandas "
                "DataFrame, write the file with index=False"
            )
        if name in before:
            raise InputError(f"{path}: two columns are named {name!r}, expected unique names")
        before.add(name)
    for name in required:
        if name not in header:
            found = ", ".join(repr(h) for h in header[:8]) + (", ..." if len(header) > 8 else "")
            raise InputError(f"{path}: no column {name!r}, found {found}; {nearest(name, header)}")


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
