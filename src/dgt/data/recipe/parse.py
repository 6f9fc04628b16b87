"""Parses the distinct values of a column as words, numbers, truth values, dates or times.

Every function raises an error at the first value that it cannot parse. A missing value in words,
such as NA, becomes NaN.
"""

import re
from datetime import UTC, datetime, time, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dgt.data.magnitude import LARGEST, magnitude
from dgt.data.recipe.table import Cells, is_text
from dgt.errors import InputError

MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "?")
"""Words for a missing cell in columns of numbers, truth values, dates and times, in lower case."""
TRUE, FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")

_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(inf|Inf|INF)$"
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.\d+)?)?")
_DAY = re.compile(r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})(?:[T ]+(\S.*))?")
ORDERS = {"ymd": "2024-01-31", "dmy": "31.01.2024", "mdy": "01/31/2024"}
"""The orders of day, month and year, with an example of each."""

NUMBER, BOOLEAN, DATE, TIME = (
    "a number",
    "true or false",
    "a date such as 2024-01-31 or 2024-01-31 18:30",
    "a time such as 18:30",
)


def words(cells: Cells) -> pa.Array:
    """Returns the values as strings without surrounding spaces: 7 as "7", true as "true"."""
    values = cells.column.values
    if pa.types.is_floating(values.type):
        numbers = values.to_numpy(zero_copy_only=False)
        return pa.array([str(int(n)) if n == int(n) else repr(float(n)) for n in numbers])
    if pa.types.is_binary(values.type) or pa.types.is_nested(values.type):
        raise cells.error(0, "text, numbers, dates or lists; to leave it out, ignore the column")
    if not is_text(values.type):
        values = values.cast(pa.string())
    return pc.utf8_trim_whitespace(values)


def present(cells: Cells) -> np.ndarray:
    """Returns whether each value is not a word for a missing cell."""
    if not is_text(cells.column.values.type):
        return np.ones(len(cells.column.values), dtype=bool)
    lower = pc.utf8_lower(words(cells))
    missing = pc.is_in(lower, value_set=pa.array(MISSING, lower.type))
    return ~missing.to_numpy(zero_copy_only=False)


def are_numbers(cells: Cells) -> np.ndarray:
    """Returns whether each value is the notation of a number."""
    return pc.match_substring_regex(words(cells), _NUMBER).to_numpy(zero_copy_only=False)


def all_numbers(cells: Cells) -> bool:
    """Returns whether all values are numbers or missing; faster than :func:`are_numbers`."""
    try:
        _numbers_in_words(cells)
    except ValueError:
        return False
    return True


def is_number(text: str) -> bool:
    """Returns whether a text is the notation of a number, or a word for a missing one."""
    return re.search(_NUMBER, text) is not None or text.lower() in MISSING


def numbers(cells: Cells) -> np.ndarray:
    """Parses numbers, float64 ``(D,)``."""
    kind = cells.column.values.type
    if is_text(kind):
        found = _numbers_in_words(cells)
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        # Large integers are rounded, as any number is when it becomes float32.
        found = cells.column.values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    elif pa.types.is_decimal(kind):
        found = np.array([float(value) for value in cells.column.values.to_pylist()])
    elif pa.types.is_duration(kind):
        micro = cells.column.values.cast(pa.duration("us"), safe=False).cast(pa.int64())
        found = micro.to_numpy(zero_copy_only=False) / 1e6
    else:
        raise cells.error(0, NUMBER)
    bad = np.abs(found) > LARGEST
    if bad.any():
        value = int(np.flatnonzero(bad)[0])
        raise too_large(cells, value, float(found[value]))
    return found


def too_large(cells: Cells, value: int, number: float) -> InputError:
    """Returns the error for a number, given the index of its value."""
    return cells.error(value, magnitude(number).removeprefix("expected "), str(number))


def _numbers_in_words(cells: Cells) -> np.ndarray:
    texts, known = words(cells), present(cells)
    filled = pc.if_else(pa.array(known), texts, pa.scalar("nan", texts.type))
    try:
        return filled.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:  # a sign, or no number
        bad = known & ~are_numbers(cells)
        if bad.any():
            raise cells.error(int(np.flatnonzero(bad)[0]), NUMBER) from None
    unsigned = pc.replace_substring_regex(filled, r"^\+", "")
    return unsigned.cast(pa.float64()).to_numpy(zero_copy_only=False)


def booleans(cells: Cells) -> np.ndarray:
    """Parses truth values as 1 and 0, float64 ``(D,)``."""
    lower = pc.utf8_lower(words(cells))
    true, false = (
        pc.is_in(lower, value_set=pa.array(each, lower.type)).to_numpy(zero_copy_only=False)
        for each in (TRUE, FALSE)
    )
    known = present(cells)
    bad = known & ~true & ~false
    if bad.any():
        raise cells.error(int(np.flatnonzero(bad)[0]), BOOLEAN)
    return np.where(known, true.astype(np.float64), np.nan)


def dates(cells: Cells, order: str | None = None) -> tuple[np.ndarray, str]:
    """Parses dates, with or without a time, as seconds since 1970 in UTC.

    Args:
        cells: The column.
        order: Order of day, month and year (default: year first, or the only order that is
            possible for all dates).

    Returns:
        float64 ``(D,)``, and the order.
    """
    if not is_text(cells.column.values.type):
        if not (pa.types.is_date(cells.column.values.type) or _is_stamp(cells)):
            raise cells.error(0, DATE)
        stamps = cells.column.values.cast(pa.timestamp("us", _zone(cells)), safe=False)
        return stamps.cast(pa.int64()).to_numpy(zero_copy_only=False) / 1e6, "ymd"
    texts, known = words(cells).to_pylist(), present(cells)
    orders = (order,) if order else _possible_orders(cells, texts, known)
    if len(orders) > 1:
        first = int(np.flatnonzero(known)[0])
        name = cells.column.name
        raise cells.error(
            first,
            "dates whose order of day and month is clear; write them as 2024-01-31, or set the "
            f"order: --columns {name}=date:dmy or {name}=date:mdy",
        )
    seconds = np.full(len(texts), np.nan)
    for i in np.flatnonzero(known):
        found = _moment(texts[i], orders[0])
        if found is None:
            raise cells.error(int(i), f"a date such as {ORDERS[orders[0]]}")
        seconds[i] = found
    return seconds, orders[0]


def _possible_orders(cells: Cells, texts: list[str], known: np.ndarray) -> tuple[str, ...]:
    """Returns the orders in which most dates can be read; year first if that is one of them."""
    shares = {
        order: np.mean(
            [_moment(texts[i], order) is not None for i in np.flatnonzero(known)] or [True]
        )
        for order in ORDERS
    }
    most = max(shares.values())
    if most < 0.5:
        raise cells.error(int(np.flatnonzero(known)[0]), DATE)
    best = tuple(order for order, share in shares.items() if share == most)
    return ("ymd",) if "ymd" in best else best


def _moment(text: str, order: str) -> float | None:
    """Returns the seconds since 1970 of a date in words, or None if it is none."""
    match = _DAY.fullmatch(text)
    if match is None:
        return None
    first, _, second, third, clock = match.groups()
    parts = dict(zip(order, (first, second, third), strict=True))
    if len(parts["y"]) != 4 or len(parts["m"]) > 2 or len(parts["d"]) > 2:
        return None
    try:
        day = datetime(int(parts["y"]), int(parts["m"]), int(parts["d"]), tzinfo=UTC)
        if clock:
            moment = time.fromisoformat(clock.replace(" ", "").upper().removesuffix("UTC"))
            offset = moment.utcoffset() or timedelta(0)
            day = datetime.combine(day.date(), moment.replace(tzinfo=UTC)) - offset
    except (ValueError, OverflowError):
        return None
    return day.timestamp()


def are_dates(cells: Cells) -> np.ndarray:
    """Returns whether each value is the notation of a date, in any order."""
    return np.array(
        [any(_moment(w, o) is not None for o in ORDERS) for w in words(cells).to_pylist()],
        dtype=bool,
    )


def are_times(cells: Cells) -> np.ndarray:
    """Returns whether each value is the notation of a time of day."""
    return np.array([_TIME.fullmatch(w) is not None for w in words(cells).to_pylist()], dtype=bool)


def times(cells: Cells) -> np.ndarray:
    """Parses times of day as seconds since midnight, float64 ``(D,)``."""
    if not is_text(cells.column.values.type):
        if not pa.types.is_time(cells.column.values.type):
            raise cells.error(0, TIME)
        micro = cells.column.values.cast(pa.time64("us"), safe=False).cast(pa.int64())
        return micro.to_numpy(zero_copy_only=False) / 1e6
    known, texts = present(cells), words(cells).to_pylist()
    seconds = np.full(len(texts), np.nan)
    for i in np.flatnonzero(known):
        match = _TIME.fullmatch(texts[i])
        hours, minutes, rest = (int(g or 0) for g in match.groups()) if match else (24, 0, 0)
        if hours > 23 or minutes > 59 or rest > 59:
            raise cells.error(int(i), TIME)
        seconds[i] = 3600 * hours + 60 * minutes + rest
    return seconds


def _is_stamp(cells: Cells) -> bool:
    return pa.types.is_timestamp(cells.column.values.type)


def _zone(cells: Cells) -> str | None:
    kind = cells.column.values.type
    return kind.tz if pa.types.is_timestamp(kind) else None


def is_list_type(kind: pa.DataType) -> bool:
    """Returns whether values of an Arrow type are lists."""
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(check(kind) for check in checks)
