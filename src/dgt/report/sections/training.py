"""The training curves."""

import numpy as np

from dgt.evaluate import METRICS
from dgt.report import charts
from dgt.report.display import chart_text
from dgt.report.facts import Facts
from dgt.report.sections.blocks import Block, Chart, Section, Table, labels_of
from dgt.runs.folder import Row

POINTS = 400  # of a line
ROWS = 12  # of a table


def section(facts: list[Facts]) -> Section:
    metric = facts[0].metrics["metric"]
    blocks: list[Block] = []
    if all(each.metrics["metric"] == metric for each in facts):
        share = metric in METRICS and METRICS[metric].share
        blocks.append(_chart(facts, metric, share=share))
    blocks.append(_chart(facts, "loss", share=False))
    return Section("training", "Training curves", blocks)


def _chart(facts: list[Facts], what: str, *, share: bool) -> Chart:
    series = []
    for r, (name, each) in enumerate(zip(labels_of(facts), facts, strict=True)):
        prefix = "" if len(facts) == 1 else f"{name}, "
        for rows in each.curves:
            thin = _thinned(rows)
            epochs = [row["epoch"] for row in thin]
            for p, (part, title) in enumerate((("train", "training"), ("val", "validation"))):
                if len(facts) == 1 or part == "val":
                    legend = chart_text(f"{prefix}{title}", 40)
                    color = p if len(facts) == 1 else r
                    series.append((legend, epochs, [row[f"{part}_{what}"] for row in thin], color))
    only = facts[0] if len(facts) == facts[0].runs == 1 else None
    marked = None if only is None else only.metrics["best_epoch"]
    chart = charts.lines(
        series, x="epoch", y=what, share=share, marked=marked, falls=what == "loss"
    )
    return Chart(chart, _summary(facts, what), _table(facts, what, share), title=what.capitalize())


def _summary(facts: list[Facts], what: str) -> str:
    text = f"The {what} over the epochs of training."
    if len(facts) == 1:
        text += (
            " That of the training nodes is measured with dropout, which makes it look worse than "
            "it is."
        )
    if len(facts) == facts[0].runs == 1:
        text += f" The dotted line is the best epoch, {facts[0].metrics['best_epoch']}."
    return text


def _table(facts: list[Facts], what: str, share: bool) -> Table:
    """A few epochs of the first run of each folder."""

    def text(value: float) -> str:
        return f"{value:.1%}" if share else f"{value:.3f}"

    columns = ["epoch"]
    cells: dict[int, dict[int, list[str]]] = {}
    for r, (name, each) in enumerate(zip(labels_of(facts), facts, strict=True)):
        prefix = "" if len(facts) == 1 else f"{name}: "
        columns += [f"{prefix}training", f"{prefix}validation"]
        for row in _thinned(each.curves[0], ROWS):
            values = [text(row[f"{part}_{what}"]) for part in ("train", "val")]
            cells.setdefault(int(row["epoch"]), {})[r] = values
    rows = [
        [str(epoch), *(text for r in range(len(facts)) for text in cells[epoch].get(r, ["", ""]))]
        for epoch in sorted(cells)
    ]
    return Table(columns, rows, folded=True, caption="A few epochs as a table")


def _thinned(rows: list[Row], most: int = POINTS) -> list[Row]:
    """Returns evenly spaced epochs, among them the first and the last one."""
    if len(rows) <= most:
        return rows
    return [rows[i] for i in np.linspace(0, len(rows) - 1, most).round().astype(int)]
