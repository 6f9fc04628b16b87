"""Average rank of the models, the last column of the paper's Table 1."""

import dataclasses
from typing import Any

from dgt.experiments.accuracy import NOTHING
from dgt.experiments.paper import PAPER
from dgt.report.sheet import Sheet

NAME = "average rank"
NOTE = "Average rank: over the data sets of the paper and among the models in this table."


def with_ranks(sheet: Sheet) -> Sheet:
    """Adds the average rank of each model to a table of accuracies.

    Models are ranked by accuracy on each data set. Our ranks and those of the paper are computed
    over the same lines. As in the paper, models of equal accuracy share the better rank, and a
    model without a figure ranks last.
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
