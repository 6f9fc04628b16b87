"""Reads CSV and Parquet files into named columns that know the place of each cell."""

import contextlib
import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

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
    try:
        with _long_cells(), open(path, encoding="utf-8-sig", newline="") as file:
            header = next(csv.reader(file), [])
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"{path}: not a CSV file: expected text in UTF-8") from None
    _check_header(path, header, required)
    try:
        table = pa.csv.read_csv(
            path,
            # Quoted labels and ids may contain line breaks.
            parse_options=pa.csv.ParseOptions(newlines_in_values=True),
            convert_options=pa.csv.ConvertOptions(
                column_types={name: pa.string() for name in header},
                null_values=[""],
                strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid as error:
        raise _explain(path, len(header)) or error from None
    if any(_has_line_break(column) for column in table.columns):
        # Either intended, or an unclosed quote has swallowed the rows below it.
        problem = _explain(path, len(header))
        if problem:
            raise problem
    columns = dict(zip(header, table.columns, strict=True))
    return Frame(str(path), columns, partial(_row_of_csv, path), typed=False)


def _has_line_break(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_string(column.type):
        return False
    return any(pc.any(pc.match_substring(column, end)).as_py() for end in "\n\r")


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


def _row_of_csv(path: Path, row: int) -> str:
    return f"row {_line_number(path, row)}"


def _check_header(path: Path, header: list[str], required: tuple[str, ...]) -> None:
    if not header:
        raise InputError(f"{path}: empty file, expected the columns {', '.join(required)}")
    for position, name in enumerate(header, start=1):
        if name == "" or name.startswith("__index_level_"):
            raise InputError(
                f"{path}: column {position} has no name; if it is the index of a pandas "
                "DataFrame, write the file with index=False"
            )
        if name in header[: position - 1]:
            raise InputError(f"{path}: two columns are named {name!r}, expected unique names")
    for name in required:
        if name not in header:
            found = ", ".join(repr(h) for h in header[:8]) + (", ..." if len(header) > 8 else "")
            raise InputError(f"{path}: no column {name!r}, found {found}; {nearest(name, header)}")


def _line_number(path: Path, row: int) -> int:
    """Returns the line of the file at which a data row starts; the header is line 1.

    Reads the file again: quoted cells may span several lines, and empty lines are not rows.
    """
    with _long_cells(), open(path, encoding="utf-8-sig", errors="replace", newline="") as file:
        reader = csv.reader(file)
        start = count = 0
        for cells in reader:
            if cells:
                if count == row + 1:
                    return start + 1
                count += 1
            start = reader.line_num
    return row + 2


def _explain(path: Path, width: int) -> InputError | None:
    """Returns the first error in a CSV file, if any; slow, and strict about quotes."""
    line = 0
    try:
        with _long_cells(), open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            for cells in reader:
                if cells and len(cells) != width:
                    return InputError(
                        f"{path}: row {line + 1}: got {len(cells)} cells, expected {width}"
                    )
                line = reader.line_num
    except UnicodeDecodeError:
        return InputError(f"{path}: {_not_utf8(path)}, expected text in UTF-8")
    except csv.Error as error:
        return InputError(f"{path}: row {line + 1}: {error}")
    return None


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    limit = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        csv.field_size_limit(limit)


def _not_utf8(path: Path) -> str:
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return f"row {number}: got the byte 0x{line[error.start]:02x}"
    return "not UTF-8"


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
