"""Columns of a table to ids, labels, splits and features."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dgt.errors import InputError, nearest
from dgt.io.tables import Table
from dgt.splits import PARTS

# A whole number in the one way of writing it: "7", not "007", "+7" or "7.0".
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$|(?i)^\s*[+-]?(nan|inf)\s*$"


def text(table: Table, column: str) -> pa.Array:
    """A column of ids or names as text, null where a cell is empty. The number 7 becomes "7", so
    that files of different kinds compare."""
    cells = table.columns[column].combine_chunks()
    if pa.types.is_dictionary(cells.type):
        cells = cells.dictionary_decode()
    if pa.types.is_floating(cells.type):
        # Whole numbers with gaps become floats in many a tool.
        cells = pc.if_else(pc.is_nan(cells), pa.scalar(None, cells.type), cells)
        bad = pc.or_(pc.not_equal(cells, pc.trunc(cells)), pc.greater(pc.abs(cells), 2.0**53))
        if pc.any(bad).as_py():
            row = _first(bad)
            raise table.error(row, column, cells[row].as_py(), "text or a whole number")
        cells = cells.cast(pa.int64())
    kinds = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_null)
    if not (_is_text(cells.type) or any(kind(cells.type) for kind in kinds)):
        raise InputError(
            f"{table.name}: column {column!r}: got {cells.type} values, "
            "expected text or whole numbers"
        )
    cells = cells.cast(pa.large_string())
    return pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)


def ids(table: Table, column: str = "id") -> tuple[pa.Array, list[str] | list[int]]:
    """The ids as text, to look others up in, and as the user's own: whole numbers or text."""
    cells = text(table, column)
    _all_present(table, column, cells, "an id")
    if pc.count_distinct(cells).as_py() < len(cells):
        first: dict[str, int] = {}
        for row, value in enumerate(cells.to_pylist()):
            if value in first:
                raise table.error(
                    row, column, value, f"ids that differ: {table.place(first[value])} has it too"
                )
            first[value] = row
    kind = table.columns[column].type
    if pa.types.is_integer(kind):
        return cells, table.columns[column].to_pylist()
    if (not table.typed or not _is_text(kind)) and pc.all(
        pc.match_substring_regex(cells, _WHOLE)
    ).as_py():
        return cells, cells.cast(pa.int64()).to_pylist()
    return cells, cells.to_pylist()


def edges(table: Table, known: pa.Array, nodes: str) -> np.ndarray:
    """Rows of source and target as node numbers, of shape [2, E]."""
    ends = []
    for column in ("source", "target"):
        cells = text(table, column)
        _all_present(table, column, cells, "the id of a node")
        index = pc.index_in(cells, value_set=known)
        if index.null_count:
            row = _first(pc.is_null(index))
            raise table.error(row, column, cells[row].as_py(), f"an id that {nodes} has")
        ends.append(index.to_numpy().astype(np.int64))
    return np.stack(ends)


def labels(table: Table, column: str = "label") -> tuple[np.ndarray, list[str]]:
    """Class numbers, -1 where there is no label, and the classes' names in their order: as
    numbers if all of them are whole numbers, else as text."""
    cells = text(table, column)
    names = [name for name in cells.unique().to_pylist() if name is not None]
    values = pa.array(names, cells.type)
    whole = pc.all(pc.match_substring_regex(values, _WHOLE)).as_py()
    names.sort(key=int if whole else None)
    index = pc.index_in(cells, value_set=pa.array(names, cells.type), skip_nulls=True)
    return pc.fill_null(index, -1).to_numpy().astype(np.int64), names


def splits(table: Table, column: str = "split") -> dict[str, np.ndarray]:
    """Masks of train, val and test; a node with an empty cell is in none."""
    cells = text(table, column)
    index = pc.index_in(cells, value_set=pa.array(PARTS, cells.type), skip_nulls=True)
    unknown = pc.and_(pc.is_null(index), pc.is_valid(cells))
    if pc.any(unknown).as_py():
        row = _first(unknown)
        word = cells[row].as_py()
        raise table.error(row, column, word, f"train, val, test or nothing; {nearest(word, PARTS)}")
    part = pc.fill_null(index, -1).to_numpy()
    return {f"{name}_mask": part == number for number, name in enumerate(PARTS)}


def features(table: Table, columns: list[str]) -> np.ndarray:
    """The columns as a float32 matrix of shape [N, F]: columns of numbers, or one of lists."""
    lists = [name for name in columns if _is_list(table, name)]
    if lists and len(columns) > 1:
        other = next(name for name in columns if name != lists[0])
        raise InputError(
            f"{table.name}: column {lists[0]!r} holds lists and column {other!r} is there too, "
            "expected columns of numbers or one column of lists as features"
        )
    if lists:
        return _list_matrix(table, lists[0])
    rows = len(next(iter(table.columns.values())))
    x = np.empty((rows, len(columns)), dtype=np.float32)
    for position, name in enumerate(columns):
        x[:, position] = _finite(table, name, _numbers(table, name))
    return x


def _numbers(table: Table, name: str) -> np.ndarray:
    cells = table.columns[name].combine_chunks()
    if _is_text(cells.type) and not table.typed:
        bad = pc.invert(pc.match_substring_regex(cells, _NUMBER))
        row = _first(bad) if pc.any(bad).as_py() else 0
        raise table.error(row, name, cells[row].as_py(), "a number: every such column is a feature")
    if not (_is_number(cells.type) or pa.types.is_null(cells.type)):
        raise table.error(0, name, cells[0].as_py(), "a number: every such column is a feature")
    _all_present(table, name, cells, "a number")
    return cells.cast(pa.float64()).to_numpy(zero_copy_only=False)


def _list_matrix(table: Table, name: str) -> np.ndarray:
    cells = table.columns[name].combine_chunks()
    if _is_text(cells.type):
        cells = _parse_lists(table, name, cells)
    _all_present(table, name, cells, "a list of numbers")
    if not (_is_number(cells.type.value_type) or pa.types.is_null(cells.type.value_type)):
        raise table.error(0, name, cells[0].as_py(), "a list of numbers")
    lengths = pc.list_value_length(cells).to_numpy()
    other = np.flatnonzero(lengths != lengths[0])
    if len(other):
        row = int(other[0])
        raise table.error(
            row, name, f"a list of {lengths[row]}", f"{lengths[0]} numbers, as in the first row"
        )
    flat = cells.flatten()
    if flat.null_count:
        row = _first(pc.is_null(flat)) // int(lengths[0])
        raise table.error(row, name, cells[row].as_py(), "a list without gaps")
    numbers = flat.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return _finite(table, name, numbers.reshape(len(cells), int(lengths[0])))


def _parse_lists(table: Table, name: str, cells: pa.Array) -> pa.Array:
    """Lists written as text, "[0.5, 1]"."""
    bad = pc.invert(pc.match_substring_regex(cells, r"^\s*\[[^\[\]]*\]\s*$"))
    if pc.any(bad).as_py():
        row = _first(bad)
        raise table.error(row, name, cells[row].as_py(), "a list such as [0.5, 1]")
    inner = pc.split_pattern(pc.utf8_trim(cells, " \t\r\n[]"), ",")
    flat = pc.utf8_trim_whitespace(inner.flatten())
    bad = pc.invert(pc.match_substring_regex(flat, _NUMBER))
    if pc.any(bad).as_py():
        row = pc.list_parent_indices(inner)[_first(bad)].as_py()
        raise table.error(row, name, cells[row].as_py(), "a list of numbers")
    flat = pc.replace_substring_regex(flat, r"^\+", "").cast(pa.float64())
    return pa.ListArray.from_arrays(inner.offsets, flat)


def _finite(table: Table, name: str, numbers: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        narrow = numbers.astype(np.float32)
    bad = ~np.isfinite(narrow)
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        raise table.error(place[0], name, float(numbers[place]), "a finite number")
    return narrow


def _all_present(table: Table, name: str, cells: pa.Array, expected: str) -> None:
    if cells.null_count:
        raise table.error(_first(pc.is_null(cells)), name, None, expected)


def _first(mask: pa.Array) -> int:
    return pc.index(mask, True).as_py()


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    checks = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(check(kind) for check in checks)


def _is_number(kind: pa.DataType) -> bool:
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(kind) for check in checks)


def _is_list(table: Table, name: str) -> bool:
    cells = table.columns[name]
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(check(cells.type) for check in checks):
        return True
    if table.typed or not _is_text(cells.type) or len(cells) == 0:
        return False
    return (cells[0].as_py() or "").lstrip().startswith("[")
