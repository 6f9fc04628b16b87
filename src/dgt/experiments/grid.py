"""A table of accuracies in the layout of the paper: one row per model, one column per graph."""

import dataclasses
from typing import Any

from dgt.experiments import average_rank as ranks
from dgt.experiments.accuracy import NOTHING, OUT_OF_MEMORY, interval
from dgt.experiments.marks import code_marks, code_notes
from dgt.experiments.paper import PAPER
from dgt.report.sheet import Sheet

FEWER = "*"


def with_grid(sheet: Sheet) -> Sheet:
    """Adds a grid to a table of accuracies. The best model on each graph of the paper is bold."""
    lines = [row for row in sheet.numbers if row["dataset"] != ranks.NAME]
    averages = {row["model"]: row for row in sheet.numbers if row["dataset"] == ranks.NAME}
    cells = {(row["dataset"], row["model"]): row for row in lines}
    marks = dict(zip(cells, code_marks(lines), strict=True))
    datasets = list(dict.fromkeys(row["dataset"] for row in lines))
    best: dict[str, float] = {}
    for row in lines:
        if row["source"] == PAPER and row["mean"] is not None:
            best[row["dataset"]] = max(row["mean"], best.get(row["dataset"], 0.0))
    rows = []
    for model in dict.fromkeys(row["model"] for row in lines):
        places = [(dataset, model) for dataset in datasets]
        texts = [_text(cells.get(at), marks.get(at, ""), best.get(at[0])) for at in places]
        if averages:
            texts.append(_rank(averages.get(model)))
        rows.append((model, *texts))
    columns = ("model", *datasets, *([ranks.NAME] if averages else []))
    grid = Sheet(sheet.title, columns, rows, tuple(_notes(lines, bool(averages))), [], labels=1)
    return dataclasses.replace(sheet, grid=grid)


def _text(row: dict[str, Any] | None, mark: str, best: float | None) -> str:
    if row is None:
        return NOTHING
    if row["out_of_memory"]:
        return OUT_OF_MEMORY
    text = interval(row["mean"], row["ci95"])
    if row["mean"] is not None and row["mean"] == best:
        text = f"**{text}**"
    if row["runs"] != row["asked"]:
        text += FEWER
    text += mark
    return text if row["difference"] is None else f"{text} ({row['difference']:+.1f})"


def _rank(row: dict[str, Any] | None) -> str:
    return NOTHING if row is None else f"{row['rank']:.1f} ({row['paper_rank']:.1f})"


def _notes(lines: list[dict[str, Any]], ranked: bool) -> list[str]:
    notes = [
        "Test accuracy in percent with 95% confidence interval; in parentheses, the difference "
        "from the paper's figure" + (" (for average ranks, the paper's rank)." if ranked else ".")
    ]
    for source in dict.fromkeys(row["source"] for row in lines):
        if source not in (None, PAPER):
            there = dict.fromkeys(row["dataset"] for row in lines if row["source"] == source)
            notes.append(f"On {' and '.join(there)}, compared with: {source}.")
    if any(row["runs"] != row["asked"] and not row["out_of_memory"] for row in lines):
        notes.append(f"{FEWER} Not all runs are finished.")
    return [*notes, *code_notes(lines)]
