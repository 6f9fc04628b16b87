"""Infers the kind of a column from its type and its values."""

import re

import numpy as np
import pyarrow as pa

from dgt.data.recipe import parse
from dgt.data.recipe.table import Cells, is_text

# From this share of the distinct values on, a column of numbers or dates with other values is
# taken for a mistake in the file, not for a column of text.
MOST = 0.5
# Above this share of distinct values, single words are taken for names of the nodes.
NAMES_SHARE = 0.9
# Up to this number of distinct values, words are always categories.
FEW = 20
# With this number of words on average, values are text and not categories.
TEXT_WORDS = 3
# A few phrases with this number of nodes each on average are categories, however many words they
# have.
REPEATED = 10
# Numbers with a currency, a percent sign, or separators of thousands or a decimal comma.
_DECORATED = re.compile(r"[^\w\s]?\s?[+-]?\d[\d.,' ]*\s?(%|[^\w\s]|[A-Z]{3})?")


def infer(cells: Cells) -> tuple[str, str]:
    """Returns the kind of a column, and a remark for a column that is ignored."""
    values = cells.column.values
    if not len(values) or not parse.present(cells).any():
        return "ignore", "no values"
    if is_text(values.type):
        return _of_words(cells) if cells.column.typed else _of_notation(cells)
    for check, kind in _TYPES:
        if check(values.type):
            return kind, ""
    raise cells.error(
        0,
        "a number, text, a date or a list (all columns except id, label and split are features); "
        "to leave the column out, ignore it: --columns "
        f"{cells.column.name}=ignore",
    )


_TYPES = [
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "number"),
    (pa.types.is_floating, "number"),
    (pa.types.is_decimal, "number"),
    (pa.types.is_duration, "number"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "date"),
    (pa.types.is_time, "time"),
    (parse.is_list_type, "list"),
]


def _of_notation(cells: Cells) -> tuple[str, str]:
    """Infers the kind of a column of a CSV file."""
    known = parse.present(cells)
    if parse.all_numbers(cells):
        return "number", ""
    if (cells.column.values[0].as_py()).lstrip().startswith("["):
        return "list", ""
    checks = {"number": parse.are_numbers, "date": parse.are_dates, "time": parse.are_times}
    for kind, check in checks.items():
        found = check(cells)[known]
        if found.all():
            return kind, ""
        if found.mean() >= MOST:
            raise _mixed(cells, int(np.flatnonzero(known)[np.flatnonzero(~found)[0]]), kind)
    try:
        parse.booleans(cells)
        return "boolean", ""
    except ValueError:
        pass
    texts = parse.words(cells).to_pylist()
    decorated = [_DECORATED.fullmatch(texts[i]) is not None for i in np.flatnonzero(known)]
    if np.mean(decorated) > MOST:
        raise _mixed(cells, int(np.flatnonzero(known)[np.flatnonzero(decorated)[0]]), "number")
    return _of_words(cells)


def _mixed(cells: Cells, value: int, kind: str) -> Exception:
    name = cells.column.name
    expected = {"number": parse.NUMBER, "date": parse.DATE, "time": parse.TIME}[kind]
    return cells.error(
        value,
        f"{expected}, like most values of the column; if it is not a column of {kind}s, set its "
        f"kind: --columns {name}=category or {name}=text or {name}=ignore",
    )


def _of_words(cells: Cells) -> tuple[str, str]:
    """Tells categories, text and names of the nodes apart."""
    texts = parse.words(cells).to_pylist()
    spaces = np.mean([len(text.split()) for text in texts])
    filled = int((cells.codes >= 0).sum())
    repeated = len(texts) <= FEW and filled >= REPEATED * len(texts)
    if spaces >= TEXT_WORDS and len(texts) > 2 and not repeated:
        return "text", ""
    if len(texts) > FEW and len(texts) > NAMES_SHARE * filled:
        if spaces < 1.5:
            return "ignore", "almost every node has a value of its own"
        return "text", ""
    return "category", ""
