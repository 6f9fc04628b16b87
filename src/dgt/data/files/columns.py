"""Interprets the columns of a frame as ids, edges, labels, splits and features."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dgt.data.files.frame import Frame
from dgt.data.files.normalization import LARGEST, magnitude
from dgt.data.splits import PARTS
from dgt.errors import InputError, nearest

# Integers in canonical form: "7", but not "007", "+7" or "7.0".
_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
_FEATURE = "a number (all columns except id, label and split are features)"
_NUMBER = r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$|(?i)^\s*[+-]?(nan|inf)\s*$"


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
    cells = text(frame, column)
    _all_present(frame, column, cells, "an id")
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
    if (not frame.typed or not _is_text(kind)) and pc.all(
        pc.match_substring_regex(cells, _WHOLE)
    ).as_py():
        return cells, cells.cast(pa.int64()).to_pylist()
    return cells, cells.to_pylist()


def edges(frame: Frame, known: pa.Array, nodes: str) -> np.ndarray:
    """Returns the indices of source and target nodes, shape ``(2, E)``."""
    ends = []
    for column in ("source", "target"):
        cells = text(frame, column)
        _all_present(frame, column, cells, "the id of a node")
        index = pc.index_in(cells, value_set=known)
        if index.null_count:
            row = _first(pc.is_null(index))
            raise frame.error(row, column, cells[row].as_py(), f"an id in {nodes}")
        ends.append(index.to_numpy().astype(np.int64))
    return np.stack(ends)


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


def features(frame: Frame, columns: list[str]) -> np.ndarray:
    """Returns columns of numbers, or one column of lists, as float32 matrix, shape ``(N, F)``."""
    lists = [name for name in columns if _is_list(frame, name)]
    if lists and len(columns) > 1:
        other = next(name for name in columns if name != lists[0])
        raise InputError(
            f"{frame.name}: column {lists[0]!r} contains lists, but there is also column "
            f"{other!r}; expected columns of numbers, or a single column of lists, as features"
        )
    if lists:
        return _list_matrix(frame, lists[0])
    rows = len(next(iter(frame.columns.values())))
    x = np.empty((rows, len(columns)), dtype=np.float32)
    for position, name in enumerate(columns):
        x[:, position] = _finite(frame, name, _numbers(frame, name))
    return x


def _numbers(frame: Frame, name: str) -> np.ndarray:
    cells = frame.columns[name].combine_chunks()
    if _is_text(cells.type) and not frame.typed:
        bad = pc.invert(pc.match_substring_regex(cells, _NUMBER))
        row = _first(bad) if pc.any(bad).as_py() else 0
        raise frame.error(
            row,
            name,
            cells[row].as_py(),
            _FEATURE,
        )
    if not (_is_number(cells.type) or pa.types.is_null(cells.type)):
        raise frame.error(
            0,
            name,
            cells[0].as_py(),
            _FEATURE,
        )
    _all_present(frame, name, cells, "a number")
    return _float64(cells)


def _list_matrix(frame: Frame, name: str) -> np.ndarray:
    cells = frame.columns[name].combine_chunks()
    if _is_text(cells.type):
        cells = _parse_lists(frame, name, cells)
    _all_present(frame, name, cells, "a list of numbers")
    if not (_is_number(cells.type.value_type) or pa.types.is_null(cells.type.value_type)):
        raise frame.error(0, name, cells[0].as_py(), "a list of numbers")
    lengths = pc.list_value_length(cells).to_numpy()
    other = np.flatnonzero(lengths != lengths[0])
    if len(other):
        row = int(other[0])
        raise frame.error(
            row, name, f"a list of {lengths[row]}", f"a list of {lengths[0]}, as in the first row"
        )
    flat = cells.flatten()
    if flat.null_count:
        row = _first(pc.is_null(flat)) // int(lengths[0])
        raise frame.error(row, name, cells[row].as_py(), "a list without missing values")
    numbers = _float64(flat)
    return _finite(frame, name, numbers.reshape(len(cells), int(lengths[0])))


def _parse_lists(frame: Frame, name: str, cells: pa.Array) -> pa.Array:
    """Parses lists given as strings, such as "[0.5, 1]"."""
    bad = pc.invert(pc.match_substring_regex(cells, r"^\s*\[[^\[\]]*\]\s*$"))
    if pc.any(bad).as_py():
        row = _first(bad)
        raise frame.error(row, name, cells[row].as_py(), "a list such as [0.5, 1]")
    inner = pc.split_pattern(pc.utf8_trim(cells, " \t\r\n[]"), ",")
    flat = pc.utf8_trim_whitespace(inner.flatten())
    bad = pc.invert(pc.match_substring_regex(flat, _NUMBER))
    if pc.any(bad).as_py():
        row = pc.list_parent_indices(inner)[_first(bad)].as_py()
        raise frame.error(row, name, cells[row].as_py(), "a list of numbers")
    flat = pc.replace_substring_regex(flat, r"^\+", "").cast(pa.float64())
    return pa.ListArray.from_arrays(inner.offsets, flat)


def _float64(cells: pa.Array) -> np.ndarray:
    # Large integers are rounded, as any number is when it becomes float32.
    return cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _finite(frame: Frame, name: str, numbers: np.ndarray) -> np.ndarray:
    bad = ~(np.abs(numbers) <= LARGEST)  # also true for NaN
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        value = float(numbers[place])
        raise frame.error(place[0], name, value, magnitude(value).removeprefix("expected "))
    return numbers.astype(np.float32)


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


def _is_number(kind: pa.DataType) -> bool:
    checks = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    return any(check(kind) for check in checks)


def _is_list(frame: Frame, name: str) -> bool:
    cells = frame.columns[name]
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(check(cells.type) for check in checks):
        return True
    if frame.typed or not _is_text(cells.type) or len(cells) == 0:
        return False
    return (cells[0].as_py() or "").lstrip().startswith("[")
