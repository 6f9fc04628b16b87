"""The models' average rank, the last column of the paper's Table 1."""

import dataclasses
from typing import Any

from dgt.experiments.accuracy import NOTHING
from dgt.experiments.paper import PAPER
from dgt.report import Sheet

NAME = "average rank"
NOTE = "Average rank: among the models, over the data sets of the paper, that are here."


def with_ranks(sheet: Sheet) -> Sheet:
    """A table of accuracies with a line for each model: its rank by accuracy, the mean over the
    data sets, ours beside the paper's for the same lines.

    Models of equal accuracy share the better rank; a model without a figure comes after all that
    have one, as in the paper.
    """
    rows = [row for row in sheet.numbers if row["source"] == PAPER]
    models = list(dict.fromkeys(row["model"] for row in rows))
    if len(models) < 2:
        return sheet
    ours, theirs = _average(rows, models, "mean"), _average(rows, models, "paper")
    numbers: list[dict[str, Any]] = [
        {"dataset": NAME, "model": m, "rank": ours[m], "paper_rank": theirs[m]} for m in models
    ]
    lines = [
        (NAME, m, f"{ours[m]:.2f}", NOTHING, NOTHING, f"{theirs[m]:.2f}", NOTHING) for m in models
    ]
    return dataclasses.replace(
        sheet,
        rows=[*sheet.rows, *lines],
        notes=(*sheet.notes, NOTE),
        numbers=[*sheet.numbers, *numbers],
    )


def _average(rows: list[dict[str, Any]], models: list[str], column: str) -> dict[str, float]:
    ranks: dict[str, list[int]] = {model: [] for model in models}
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        figures = {row["model"]: row[column] for row in rows if row["dataset"] == dataset}
        for model in models:
            own = figures.get(model)
            better = [f for f in figures.values() if f is not None and (own is None or f > own)]
            ranks[model].append(1 + len(better))
    return {model: sum(each) / len(each) for model, each in ranks.items()}
