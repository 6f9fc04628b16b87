"""What becomes of the columns of each kind.

A kind works on the distinct values of a column. ``fit`` reads the values of the training nodes and
returns the numbers to store, plain JSON. ``rows`` turns every distinct value into a row of
features, and a missing cell into the last row.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dgt.config import DataConfig
from dgt.data.recipe import dates, lists, parse, words
from dgt.data.recipe.scaling import Scaling
from dgt.data.recipe.table import Cells

Fitted = dict[str, Any]


class Kind(NamedTuple):
    """How columns of a kind become features."""

    fit: Callable[[Cells, Cells, DataConfig, str | None], Fitted | None]
    """Takes the column of all nodes, that of the training nodes, the settings and the option after
    the kind, as in date:dmy. Returns None if the training nodes say nothing about the column."""
    rows: Callable[[Cells, Fitted], np.ndarray]
    """Returns the features of each distinct value and of a missing cell, float32 ``(D + 1, F)``."""
    names: Callable[[str, Fitted], list[str]]
    """Returns the names of the F features."""
    text: Callable[[Fitted], str]
    """Says what becomes of the column."""


def _numeric(read: Callable[[Cells], np.ndarray], plain: bool = False) -> Kind:
    def fit(
        cells: Cells, training: Cells, settings: DataConfig, option: str | None
    ) -> Fitted | None:
        numbers = read(cells)
        seen = np.append(numbers, np.nan)[training.codes]
        if np.isnan(seen).all():
            return None
        return Scaling.fit(seen, settings.standardize and not plain).stored()

    def rows(cells: Cells, fitted: Fitted) -> np.ndarray:
        return Scaling(**fitted).rows(np.append(read(cells), np.nan))

    def names(name: str, fitted: Fitted) -> list[str]:
        return Scaling(**fitted).names(name)

    def text(fitted: Fitted) -> str:
        return Scaling(**fitted).text()

    return Kind(fit, rows, names, text)


KINDS: dict[str, Kind] = {
    "number": _numeric(parse.numbers),
    "boolean": _numeric(parse.booleans, plain=True),
    "category": Kind(
        words.fit_categories, words.category_rows, words.category_names, words.category_text
    ),
    "date": Kind(dates.fit_dates, dates.date_rows, dates.date_names, dates.date_text),
    "time": Kind(dates.fit_times, dates.time_rows, dates.time_names, dates.time_text),
    "text": Kind(words.fit_text, words.text_rows, words.text_names, words.text_text),
    "list": Kind(lists.fit_lists, lists.list_rows, lists.list_names, lists.list_text),
}
"""All kinds of columns that become features, by name."""
