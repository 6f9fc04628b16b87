"""A recipe: how each column of a node table becomes features, fitted on the training nodes."""

import copy
import logging
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data.recipe import words
from dgt.data.recipe.infer import infer
from dgt.data.recipe.kinds import KINDS
from dgt.data.recipe.table import Cells, Table, cells, from_features, has_table, without_table
from dgt.errors import InputError, nearest

log = logging.getLogger("dgt")

CONSTANT = "constant"  # name of the only feature of a table without any


@dataclass(frozen=True)
class Recipe:
    """What becomes of each column, as plain values: one dict per column, in the order of the
    features, with the keys ``column``, ``kind`` and, unless it is ignored, ``fitted``."""

    columns: tuple[dict[str, Any], ...]

    @classmethod
    def fit(cls, data: Data, settings: DataConfig) -> "Recipe":
        """Infers the kinds that are not set, and fits the columns on ``data.train_mask``.

        Columns are taken in the order of their names, so that their order in the file does not
        matter.
        """
        made = []
        for name, (kind, remark) in column_kinds(data, settings).items():
            kind, _, option = kind.partition(":")
            column, fitted = cells(data, name), None
            if kind != "ignore":
                training = column.of(data.train_mask)
                fitted = KINDS[kind].fit(column, training, settings, option or None)
                if fitted is None:
                    kind, remark = "ignore", "no values on training nodes"
            record: dict[str, Any] = {"column": name, "kind": kind}
            if fitted is not None:
                record["fitted"] = fitted
            elif remark:
                record["remark"] = remark
            made.append(record)
        return cls(tuple(made))

    @classmethod
    def stored(cls, columns: list[dict[str, Any]], features: int, place: str) -> "Recipe":
        """Checks a recipe that was read from a file and returns it.

        Args:
            columns: The content of the file.
            features: Number of features that the recipe must make.
            place: Name of the file in error messages.
        """
        recipe = cls(tuple(columns))
        try:
            named = all(isinstance(name, str) for name, *_ in recipe.described())
            met = named and len(recipe.feature_names()) == features
        except (AttributeError, KeyError, TypeError, ValueError):
            met = False
        if not met:
            raise InputError(f"{place}: recipe: damaged, expected a recipe of {features} features")
        return recipe

    def used(self) -> list[dict[str, Any]]:
        """Returns the columns that become features."""
        return [column for column in self.columns if column["kind"] != "ignore"]

    def feature_names(self) -> list[str]:
        """Returns the names of the features, shape ``(F,)``."""
        named = (KINDS[c["kind"]].names(c["column"], c["fitted"]) for c in self.used())
        return [name for names in named for name in names] or [CONSTANT]

    def described(self) -> list[tuple[str, str, str]]:
        """Returns the name and kind of each column, and what becomes of it."""
        return [
            (c["column"], c["kind"], KINDS[c["kind"]].text(c["fitted"]))
            if "fitted" in c
            else (c["column"], c["kind"], c.get("remark", "left out"))
            for c in self.columns
        ]

    def summary(self, place: str) -> str:
        """Returns the columns of each kind in one line."""
        kinds: dict[str, list[str]] = {}
        for column in self.columns:
            kinds.setdefault(column["kind"], []).append(column["column"])
        found = (
            f"{kind}: {', '.join(names[:8])}{', ...' if names[8:] else ''}"
            for kind, names in sorted(kinds.items())
        )
        return f"{place}: {'; '.join(found)}; dgt info shows what becomes of each column"

    def apply(self, data: Data, warn: bool = False) -> Data:
        """Replaces the table of a graph by features.

        Args:
            data: The graph, with a table or with named features. Modified in place.
            warn: Log a warning for categories that the training nodes did not have.
        """
        if not has_table(data):
            if data.get("feature_names") is None:
                raise InputError(
                    f"{data.name}: its features have no names, but the model was trained on the "
                    f"columns {_listed([c['column'] for c in self.used()])}; set feature_names"
                )
            from_features(data)
        missing = [c["column"] for c in self.used() if c["column"] not in data.table.columns]
        if missing:
            raise InputError(
                f"{data.table.name}: no column {_listed(missing)}, which the model was trained "
                f"with; {nearest(missing[0], data.table.columns)}"
            )
        known = {c["column"] for c in self.columns}
        unused = [name for name in data.table.features() if name not in known]
        if warn and unused:
            log.warning(
                "%s: column %s was not in training and is not used",
                data.table.name,
                _listed(unused),
            )
        parts = []
        for column in self.used():
            found = cells(data, column["column"])
            parts.append(rows_of(found, column))
            if warn and column["kind"] == "category":
                _warn_unseen(data, column)
        data.x = _joined(parts, data.num_nodes)
        data.feature_names = self.feature_names()
        return without_table(data)


def rows_of(found: Cells, column: dict[str, Any]) -> np.ndarray:
    """Returns the features of a column of some nodes, float32 ``(N, F)``."""
    return KINDS[column["kind"]].rows(found, column["fitted"])[found.codes]


def column_kinds(data: Data, settings: DataConfig) -> dict[str, tuple[str, str]]:
    """Returns the kind of each column that may become features, and a remark if it is ignored.

    Set kinds take precedence over inferred ones.
    """
    table: Table = data.table
    chosen = table.chosen | settings.kinds()
    names = table.features()
    for name in chosen:
        if name not in names:
            role = table.roles.get(name)
            used = f"it is used as {role}" if role else nearest(name, names)
            setting = "ignore" if chosen[name] == "ignore" else "columns"
            raise InputError(f"{setting}: {table.name} has no feature column {name!r}; {used}")
    for name in names:
        if name not in chosen and name not in table.inferred:
            table.inferred[name] = infer(cells(data, name))
    return {name: (chosen[name], "") if name in chosen else table.inferred[name] for name in names}


def described(data: Data, settings: DataConfig) -> list[tuple[str, str, str, int]]:
    """Returns the name and kind of each column of a table, what becomes of it, and its number of
    missing cells. The numbers are those of all nodes; training takes those of training nodes."""
    every = copy.copy(data)
    every.train_mask = torch.ones(data.num_nodes, dtype=torch.bool)
    names = {name: f"used as {role}" for name, role in data.table.roles.items()}
    rows = [(name, "", names[name], 0) for name in data.table.roles]
    for name, kind, becomes in Recipe.fit(every, settings).described():
        rows.append((name, kind, becomes, int((cells(data, name).codes < 0).sum())))
    return rows


def _joined(parts: list[np.ndarray], num_nodes: int) -> Tensor:
    if not parts:
        return torch.ones(num_nodes, 1)
    return torch.from_numpy(np.concatenate(parts, axis=1))


def _warn_unseen(data: Data, column: dict[str, Any]) -> None:
    count, found = words.unseen(cells(data, column["column"]), column["fitted"])
    if count:
        means = f"counted as {words.OTHER}" if column["fitted"]["other"] else "encoded as zeros"
        log.warning(
            "%s: column %r: %d nodes have a category that is not in the model's recipe (%s); %s",
            data.table.name,
            column["column"],
            count,
            _listed(found, 5),
            means,
        )


def _listed(names: list[str], most: int = 8) -> str:
    return ", ".join(repr(n) for n in names[:most]) + (", ..." if len(names) > most else "")
