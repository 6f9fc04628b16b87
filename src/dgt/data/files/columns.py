"""Interprets the columns of a frame as ids, edges, labels and splits."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dgt.data.files.frame import Frame
from dgt.data.splits import PARTS
from dgt.errors import InputError, nearest

# Integers in canonical form: "7", but not "007", "+7" or "7.0".
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"


def text(frame: Frame, column: str) -> pa.Array:
    """Returns a column of ids or names as strings, with null for empty cells.

    The number 7 becomes "7", so that columns of different files can be compared.
    """
    cells = frame.columns[column].combine_chunks()
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_floating(cells.type):
        # Many tools turn integer columns with gaps into floats. Arrow cannot round half precision.
        cells = cells.cast(pa.float32()) if cells.type == pa.float16() else cells
        cells = pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
        bad = pc.or_(pc.not_equal(cells, pc.trunc(cells)), pc.greater(pc.abs(cells), 2.0**53))
        if pc.any(bad).as_py():
            row = _first(bad)
            raise frame.error(row, column, cells[row].as_py(), "text or a whole number")
        cells = cells.cast(pa.int64())
    kinds = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)
    if not (_is_text(cells.type) or any(kind(cells.type) for kind in kinds)):
        raise InputError(
            f"{frame.name}: column {column!r}: got {cells.type} values, "
            "expected text or whole numbers"
        )
    cells = cells.cast(pa.large_string())
    return pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)


def ids(frame: Frame, column: str = "id") -> tuple[pa.Array, list[str] | list[int]]:
    """Returns the ids as strings, for lookups, and as given, as integers or strings."""
    cells = present_text(frame, column, "an id")
    if pc.count_distinct(cells).as_py() < len(cells):
        first: dict[str, int] = {}
        for row, value in enumerate(cells.to_pylist()):
            if value in first:
                raise frame.error(
                    row, column, value, f"a unique id: {frame.place(first[value])} has the same"
                )
            first[value] = row
    kind = frame.columns[column].type
    if pa.types.is_integer(kind):
        return cells, frame.columns[column].to_pylist()
    if not frame.typed or not _is_text(kind):
        return cells, plain_ids(cells)
    return cells, cells.to_pylist()


def plain_ids(cells: pa.Array) -> list[str] | list[int]:
    """Returns ids as integers if all of them are, else as strings."""
    if pc.all(pc.match_substring_regex(cells, _WHOLE)).as_py():
        return cells.cast(pa.int64()).to_pylist()
    return cells.to_pylist()


def present_text(frame: Frame, column: str, expected: str) -> pa.Array:
    """Like :func:`text`, for a column without empty cells."""
    cells = text(frame, column)
    _all_present(frame, column, cells, expected)
    return cells


def as_number(value: object) -> float:
    """Returns the number that a cell holds, or NaN."""
    try:
        return float(str(value))
    except ValueError:
        return float("nan")


def labels(frame: Frame, column: str = "label") -> tuple[np.ndarray, list[str]]:
    """Returns the class of each node, -1 for unlabeled nodes, and the sorted names of the classes.

    Names are sorted numerically if all of them are integers, else alphabetically.
    """
    cells = text(frame, column)
    names = [name for name in cells.unique().to_pylist() if name is not None]
    values = pa.array(names, cells.type)
    whole = pc.all(pc.match_substring_regex(values, _WHOLE)).as_py()
    names.sort(key=int if whole else None)
    index = pc.index_in(cells, value_set=pa.array(names, cells.type), skip_nulls=True)
    return pc.fill_null(index, -1).to_numpy().astype(np.int64), names


def splits(frame: Frame, column: str = "split") -> dict[str, np.ndarray]:
    """Returns the masks of train, val and test; nodes with an empty cell are in none of them."""
    cells = text(frame, column)
    index = pc.index_in(cells, value_set=pa.array(PARTS, cells.type), skip_nulls=True)
    unknown = pc.and_(pc.is_null(index), pc.is_valid(cells))
    if pc.any(unknown).as_py():
        row = _first(unknown)
        word = cells[row].as_py()
        raise frame.error(
            row, column, word, f"train, val, test or an empty cell; {nearest(word, PARTS)}"
        )
    part = pc.fill_null(index, -1).to_numpy()
    return {f"{name}_mask": part == number for number, name in enumerate(PARTS)}


def _all_present(frame: Frame, name: str, cells: pa.Array, expected: str) -> None:
    if cells.null_count:
        raise frame.error(_first(pc.is_null(cells)), name, None, expected)


def _first(mask: pa.Array) -> int:
    return pc.index(mask, True).as_py()


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in checks)
