"""Reads CSV, Parquet and MatrixMarket files into named columns that know the place of each cell."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from dgt.data.files.csv_file import open_csv
from dgt.data.files.names import Wanted
from dgt.errors import InputError, first_line
from dgt.storage.paths import require_regular
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


def read_frame(path: Path, wanted: Wanted) -> Frame:
    """Reads a CSV, Parquet or MatrixMarket file. All columns of a CSV file are strings.

    Args:
        path: Path that ends with ``.csv``, ``.parquet`` or ``.mtx``. A folder holds a Parquet file
            in parts.
        wanted: Columns that the file should have.
    """
    if path.suffix == ".mtx":
        return read_matrix(path)[0]
    try:
        return _csv(path, wanted) if path.suffix == ".csv" else _parquet(path, wanted)
    except (pa.ArrowException, OSError) as error:
        kind = "CSV" if path.suffix == ".csv" else "Parquet"
        raise InputError(f"{path}: not a readable {kind} file: {first_line(error)}") from None


def _csv(path: Path, wanted: Wanted) -> Frame:
    require_regular(path)
    file = open_csv(path, wanted)
    _check_header(path, file.header, wanted)
    columns = dict(zip(file.header, file.table().columns, strict=True))
    return Frame(str(path), columns, file.place, typed=False)


def _parquet(path: Path, wanted: Wanted) -> Frame:
    tables = []
    for part in _parts(path):
        require_regular(part)
        with pa.parquet.ParquetFile(part) as file:
            _check_header(part, file.schema_arrow.names, wanted)
            numbers = file.metadata.num_rows * file.metadata.num_columns
            # Repeated values take almost no space in the file.
            machine.require(4 * numbers, f"{part}: its content")
            tables.append(file.read())
        if set(tables[-1].column_names) != set(tables[0].column_names):
            raise InputError(f"{part}: has other columns than {_parts(path)[0].name}")
    table = pa.concat_tables(tables, promote_options="permissive")
    columns = dict(zip(table.column_names, table.columns, strict=True))
    return Frame(str(path), columns, _row, typed=True)


def read_matrix(path: Path) -> tuple[Frame, int, bool]:
    """Reads the entries of a square sparse matrix from a MatrixMarket file.

    Returns:
        The columns ``source`` and ``target``, counted from 1 as in the file, and, unless the file
        only says which entries there are, ``weight``; the number of rows; and whether the file is
        symmetric, and thus lists only one of each pair of entries.
    """
    from scipy.io import mminfo, mmread

    require_regular(path)
    try:
        rows, width, entries, form, field, symmetry = mminfo(path)
        if rows != width or form != "coordinate":
            raise InputError(
                f"{path}: got {form} format and shape ({rows}, {width}), expected coordinate "
                "format and a square matrix"
            )
        if field not in ("real", "integer", "unsigned-integer", "pattern", "double"):
            raise InputError(f"{path}: got {field} values, expected real ones, integers or none")
        if symmetry not in ("general", "symmetric"):
            raise InputError(f"{path}: got a {symmetry} matrix, expected general or symmetric")
        if rows > 2**31 - 1:
            raise InputError(f"{path}: got {rows} rows, expected at most {2**31 - 1}")
        machine.require(8 * rows + 40 * entries, f"{path}: its content")
        matrix = mmread(path).tocoo()
    except InputError:
        raise
    except Exception as error:
        # Damaged files raise errors of every kind.
        raise InputError(f"{path}: not a readable MatrixMarket file: {first_line(error)}") from None
    source, target = matrix.row.astype(np.int64), matrix.col.astype(np.int64)
    listed = source >= target if symmetry == "symmetric" else slice(None)  # SciPy lists both
    columns = {"source": source[listed] + 1, "target": target[listed] + 1}
    if field != "pattern":
        columns["weight"] = matrix.data[listed]
    chunked = {name: pa.chunked_array([pa.array(each)]) for name, each in columns.items()}
    frame = Frame(str(path), chunked, lambda row: f"entry {row + 1}", typed=True)
    return frame, rows, symmetry == "symmetric"


def _parts(path: Path) -> list[Path]:
    """Returns the files of a table: itself, those in a folder, or numbered ones beside it."""
    if path.is_dir():
        found = list(path.glob("*.parquet"))
        if not found:
            raise InputError(f"{path}: an empty folder, expected parts such as part-0.parquet")
    else:
        stem = re.fullmatch(r"(.+\.part-?)\d+\.parquet", path.name)
        if stem is None:
            return [path]
        found = list(path.parent.glob(f"{stem[1]}*.parquet"))
    return sorted(found, key=lambda part: [int(n) for n in re.findall(r"\d+", part.name)])


def _row(row: int) -> str:
    return f"row {row + 1}"


def _check_header(path: Path, header: list[str], wanted: Wanted) -> None:
    if not header:
        raise InputError(f"{path}: empty file, expected the columns {', '.join(wanted.required)}")
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
