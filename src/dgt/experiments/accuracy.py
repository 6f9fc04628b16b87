"""Layout of tables of accuracies: the mean of our runs next to a published figure."""

from collections.abc import Callable
from typing import Any, Literal

from dgt.data.benchmarks import BENCHMARKS
from dgt.evaluate import summarize
from dgt.experiments.marks import code_counts, code_marks, code_notes
from dgt.experiments.paper import PAPER, Figure
from dgt.experiments.table import Line
from dgt.report.sheet import Sheet

COLUMNS = ("accuracy", "std", "runs", "paper", "difference")
NOTE = (
    "Test accuracy in percent over runs on the published splits: mean with 95% confidence "
    "interval, and standard deviation."
)
METRIC_NOTE = "On {}, the area under the ROC curve in place of the accuracy."
NOTHING = "–"
OUT_OF_MEMORY = "OOM"


def accuracies(
    lines: list[Line],
    title: str,
    published: Callable[[str, str], Figure | None],
    variant: str = "model",
    notes: tuple[str, ...] = (),
) -> Sheet:
    """Lays out a table of accuracies.

    Args:
        lines: The lines of the table.
        title: Title of the table.
        published: Returns the published figure for a data set and a variant, if there is one.
        variant: Header of the column in which the variants are named.
        notes: Additional notes.
    """
    figures = [published(line.setup.dataset, line.setup.variant) for line in lines]
    numbers = [_numbers(line, figure) for line, figure in zip(lines, figures, strict=True)]
    marks: dict[str, str] = {PAPER: ""}
    for figure in figures:
        if figure and figure.source not in marks:
            marks[figure.source] = "†‡§"[len(marks) - 1]
    others = [f"{mark} Not in the paper: {source}." for source, mark in marks.items() if mark]
    rows = [
        _text(row, _shown(figure, marks), mark)
        for row, figure, mark in zip(numbers, figures, code_marks(numbers), strict=True)
    ]
    columns = ("data set", variant, *COLUMNS)
    datasets = dict.fromkeys(row["dataset"] for row in numbers)
    by_auroc = [d for d in datasets if _metric(d) == "auroc"]
    if by_auroc:
        others.append(METRIC_NOTE.format(" and ".join(by_auroc)))
    return Sheet(title, columns, rows, (NOTE, *others, *notes, *code_notes(numbers)), numbers)


def over_runs(line: Line, part: Literal["val", "test"] = "test") -> dict[str, Any]:
    """Returns mean, standard deviation and confidence interval of the accuracy in percent, or of
    the metric that a data set is compared by."""
    metric = _metric(line.setup.dataset)
    return summarize([100 * getattr(record, part)[metric] for record in line.records])


def _metric(dataset: str) -> str:
    return BENCHMARKS[dataset].metric if dataset in BENCHMARKS else "accuracy"


def _numbers(line: Line, figure: Figure | None) -> dict[str, Any]:
    """Returns the numbers of a line, with accuracies in percent."""
    test: dict[str, Any] = {"mean": None, "ci95": None, "std": None, "runs": 0}
    val_mean = None
    if line.records:
        test = over_runs(line)
        val_mean = over_runs(line, "val")["mean"]
    return {
        "dataset": line.setup.dataset,
        "model": line.setup.variant,
        "mean": test["mean"],
        "ci95": test["ci95"],
        "std": test["std"],
        "runs": test["runs"],
        "asked": line.asked,
        **code_counts(line),
        "out_of_memory": line.refused,
        "val_mean": val_mean,
        "paper": figure and figure.mean,
        "paper_ci95": figure and figure.ci95,
        "source": figure and figure.source,
        "difference": test["mean"] - figure.mean
        if line.records and figure and figure.mean is not None
        else None,
    }


def _shown(figure: Figure | None, marks: dict[str, str]) -> str:
    if figure is None:
        return NOTHING
    return figure.missing or interval(figure.mean, figure.ci95) + marks[figure.source]


def _text(row: dict[str, Any], published: str, mark: str) -> tuple[str, ...]:
    return (
        row["dataset"],
        row["model"],
        OUT_OF_MEMORY if row["out_of_memory"] else interval(row["mean"], row["ci95"]) + mark,
        NOTHING if row["std"] is None else f"{row['std']:.2f}",
        run_count(row),
        published,
        NOTHING if row["difference"] is None else f"{row['difference']:+.2f}",
    )


def interval(mean: float | None, ci95: float | None) -> str:
    """Formats a mean and its confidence interval."""
    if mean is None:
        return NOTHING
    return f"{mean:.2f}" if ci95 is None else f"{mean:.2f}±{ci95:.2f}"


def run_count(row: dict[str, Any]) -> str:
    """Formats the number of finished runs, and that of planned runs if some are missing."""
    runs, asked = row["runs"], row["asked"]
    return str(runs) if runs == asked else f"{runs}/{asked}"
