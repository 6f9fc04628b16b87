"""Lists of numbers as one column per element, and lists of words as one column per word."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dgt.config import DataConfig
from dgt.data.magnitude import LARGEST
from dgt.data.recipe import parse
from dgt.data.recipe.scaling import Scaling
from dgt.data.recipe.table import Cells, is_text
from dgt.data.recipe.words import MOST_CATEGORIES


def fit_lists(
    cells: Cells, training: Cells, settings: DataConfig, option: str | None
) -> dict[str, Any] | None:
    """Scales each element like a column of numbers, or chooses the most common words."""
    if not (training.codes >= 0).any():
        return None
    given = lists(cells)
    if are_lists_of_words(cells):
        counted: dict[str, int] = {}
        for each, count in zip(_words(given), training.counts().tolist(), strict=True):
            for word in each if count else ():
                counted[word] = counted.get(word, 0) + count
        common = sorted(counted, key=lambda word: (-counted[word], word))[:MOST_CATEGORIES]
        return {"words": sorted(common)} if common else None
    numbers = list_numbers(cells)
    if not numbers.shape[1]:
        return None
    seen = np.concatenate([numbers, np.full((1, numbers.shape[1]), np.nan)])[training.codes]
    return {"elements": [Scaling.fit(one, settings.standardize).stored() for one in seen.T]}


def list_rows(cells: Cells, fitted: dict[str, Any]) -> np.ndarray:
    """Returns the features of each list; a missing list has only missing elements, or no words."""
    if "words" in fitted:
        given = _words(lists(cells))
        known = {word: i for i, word in enumerate(fitted["words"])}
        rows = np.zeros((len(given) + 1, len(known)), dtype=np.float32)
        for row, each in enumerate(given):
            rows[row, [known[word] for word in each if word in known]] = 1
        return rows
    numbers, length = list_numbers(cells), len(fitted["elements"])
    if len(numbers) and numbers.shape[1] != length:
        raise cells.error(
            0, f"a list of {length}, as in training", f"'a list of {numbers.shape[1]}'"
        )
    numbers = np.concatenate([numbers.reshape(-1, length), np.full((1, length), np.nan)])
    scalings = (Scaling(**element) for element in fitted["elements"])
    parts = [scaling.rows(numbers[:, i]) for i, scaling in enumerate(scalings)]
    return np.concatenate(parts, axis=1)


def list_names(name: str, fitted: dict[str, Any]) -> list[str]:
    if "words" in fitted:
        return [f"{name}: {word}" for word in fitted["words"]]
    scalings = (Scaling(**element) for element in fitted["elements"])
    return [each for i, one in enumerate(scalings) for each in one.names(f"{name}[{i}]")]


def list_text(fitted: dict[str, Any]) -> str:
    if "words" in fitted:
        return f"a column for each of {len(fitted['words'])} words"
    return f"{len(fitted['elements'])} numbers, each scaled by itself"


def _words(given: pa.Array) -> list[set[str]]:
    return [{str(word) for word in each if word not in (None, "")} for each in given.to_pylist()]


def lists(cells: Cells) -> pa.Array:
    """Returns the values as lists of numbers or of strings; parses words such as "[0.5, 1]"."""
    values = cells.column.values
    if parse.is_list_type(values.type):
        return values
    if not is_text(values.type):
        raise cells.error(0, "a list")
    bad = pc.invert(pc.match_substring_regex(values, r"^\s*\[[^\[\]]*\]\s*$"))
    if pc.any(bad).as_py():
        raise cells.error(pc.index(bad, True).as_py(), "a list such as [0.5, 1]")
    inner = pc.split_pattern(pc.utf8_trim(values, " \t\r\n[]"), ",")
    flat = pc.utf8_trim(inner.flatten(), " \t\r\n'\"")
    return pa.ListArray.from_arrays(inner.offsets.cast(pa.int32()), flat)


def are_lists_of_words(cells: Cells) -> bool:
    """Returns whether the elements of lists are words. Those of a CSV file are all strings."""
    flat = lists(cells).flatten()
    if not is_text(flat.type):
        return False
    numbers = [parse.is_number(word) for word in flat.to_pylist()[:1000] if word]
    return bool(numbers) and float(np.mean(numbers)) < 0.5


def list_numbers(cells: Cells) -> np.ndarray:
    """Parses lists of numbers of one length, float64 ``(D, k)``, NaN for missing elements."""
    given = lists(cells)
    lengths = pc.list_value_length(given).to_numpy(zero_copy_only=False)
    length = lengths[0] if len(lengths) else 0
    other = np.flatnonzero(lengths != length)
    if len(other):
        row = int(other[0])
        raise cells.error(
            row, f"a list of {length}, as in the first row", f"'a list of {lengths[row]}'"
        )
    flat = given.flatten()
    try:
        if is_text(flat.type):
            lower = pc.utf8_lower(flat)
            empty = pc.is_in(lower, value_set=pa.array(parse.MISSING[1:], lower.type))
            flat = pc.if_else(empty, pa.scalar("nan", flat.type), flat)
            flat = pc.replace_substring_regex(flat, r"^\+", "")
        found = flat.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise cells.error(_not_numbers(given), "a list of numbers") from None
    bad = np.abs(found) > LARGEST
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        raise parse.too_large(cells, at // int(length), float(found[at]))
    return found.reshape(len(given), int(length))


def _not_numbers(given: pa.Array) -> int:
    """Returns the first list with an element that is not a number."""
    for i, each in enumerate(given.to_pylist()):
        try:
            [float(element) for element in each]
        except (TypeError, ValueError):
            return i
    return 0
