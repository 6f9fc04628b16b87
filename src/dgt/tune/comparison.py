"""Compares the best settings of several models, in the same runs for all of them."""

import statistics
from collections.abc import Sequence
from typing import Any

from dgt.evaluate import METRICS
from dgt.report.sheet import Sheet
from dgt.tune.final import LEAST_RUNS

COLUMNS = ("model", "val", "std", "val of the defaults", "runs", "trials")


def comparison(found: list[dict[str, Any]]) -> Sheet:
    """Lays out the result of each of several models, best first.

    Time may end the final comparison of one model before that of another. Runs that not all models
    have finished do not count, since splits differ in how hard they are.
    """
    complete = [each for each in found if "error" not in each]
    runs, note = common_runs(complete)
    rows = sorted((_row(each, runs) for each in complete), key=lambda row: row[0], reverse=True)
    failed = [each for each in found if "error" in each]
    cells = [row for _, row in rows] + [(each["model"], *["–"] * 5) for each in failed]
    notes = ((note,) if note else ()) + tuple(f"{e['model']}: {e['error']}." for e in failed)
    return Sheet("Best settings of each model", COLUMNS, cells, notes, found, labels=1)


def common_runs(found: Sequence[dict[str, Any]]) -> tuple[list[int], str]:
    """Returns the runs that the chosen settings of all models have finished, and what they are:
    those of the final comparison or, if there are not enough, those of the search."""
    if not found:
        return [], ""
    by_run = [each["final"][0]["by_run"] for each in found]
    all_have = [
        r for r in range(min(map(len, by_run))) if all(own[r] is not None for own in by_run)
    ]
    count = found[0]["runs"]
    search, further = [r for r in all_have if r < count], [r for r in all_have if r >= count]
    if further and len(further) >= min(LEAST_RUNS, min(map(len, by_run)) - count):
        least = all(len(further) == each["final_runs"] for each in found)
        note = f"Means of {_runs(len(further), 'further ')}, the same for all models"
        return further, f"{note}." if least else f"{note}; other runs do not count here."
    note = f"Means of {_runs(len(search), '')} of the search, the same for all models"
    return search, f"{note}. They also chose the settings: not all models have further runs."


def _runs(count: int, kind: str) -> str:
    return f"one {kind}run" if count == 1 else f"{count} {kind}runs"


def _row(found: dict[str, Any], runs: list[int]) -> tuple[float, tuple[str, ...]]:
    """Returns the value to sort by, and the cells of a model."""
    metric = METRICS[found["metric"]]
    chosen = [found["final"][0]["by_run"][r] for r in runs]
    own = [each["by_run"] for each in found["final"] if each["source"] == "defaults"]
    defaults = [by_run[r] for by_run in own for r in runs if by_run[r] is not None]
    mean = statistics.fmean(chosen)
    cells = (
        found["model"],
        metric.text(mean),
        metric.text(statistics.stdev(chosen)) if len(chosen) > 1 else "–",
        metric.text(statistics.fmean(defaults)) if len(defaults) == len(runs) else "–",
        str(len(runs)),
        str(found["trials"]),
    )
    return mean if metric.larger_is_better else -mean, cells
