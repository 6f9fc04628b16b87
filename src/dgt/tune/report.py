"""The report of a search: the best trials, and which settings mattered."""

import statistics
from pathlib import Path
from typing import Any

from dgt.evaluate import METRICS
from dgt.report.sheet import Sheet, markdown
from dgt.storage.files import write_text
from dgt.system.progress import duration
from dgt.tune.records import describe

REPORT = "report.md"


def best_trials(found: dict[str, Any]) -> Sheet:
    """Lays out the best trials of a search."""
    metric = found["metric"]
    text = METRICS[metric].text
    rows: list[tuple[str, ...]] = []
    for trial in found["best"]:
        values = trial["values"]
        spread = text(statistics.stdev(values)) if len(values) > 1 else "–"
        runs = (
            str(len(values)) if len(values) == found["runs"] else f"{len(values)}/{found['runs']}"
        )
        mean = text(statistics.fmean(values))
        rows.append((str(trial["trial"]), mean, spread, runs, describe(trial["settings"])))
    columns = ("trial", f"val {metric}", "std", "runs", "settings")
    return Sheet("Best trials", columns, rows, (_note(found),), found["best"], labels=len(columns))


def what_mattered(found: dict[str, Any]) -> Sheet | None:
    """Lays out the importance of each setting, if there were enough trials."""
    if not found["importances"]:
        return None
    rows: list[tuple[str, ...]] = [
        (name, f"{share:.0%}") for name, share in found["importances"].items()
    ]
    note = (
        "Importance: share of the variation of the results on the first split that a setting "
        "explains (PED-ANOVA)."
    )
    numbers = [found["importances"]]
    return Sheet("What mattered", ("setting", "importance"), rows, (note,), numbers, labels=1)


def comparison(found: list[dict[str, Any]]) -> Sheet:
    """Lays out the best trial of each of several models."""
    rows: list[tuple[str, ...]] = []
    for each in found:
        if "error" in each:
            rows.append((each["model"], *["–"] * 4))
            continue
        text, name = METRICS[each["metric"]].text, f"val_{each['metric']}"
        start = each[f"{name}_at_start"]
        values = (text(each[name]), "–" if start is None else text(start))
        rows.append((each["model"], *values, str(each["runs"]), str(each["trials"])))
    notes = tuple(f"{each['model']}: {each['error']}." for each in found if "error" in each)
    columns = ("model", "val", "val at the start", "runs", "trials")
    return Sheet("Best trial of each model", columns, rows, notes, found, labels=1)


def write_report(found: dict[str, Any], out: Path) -> None:
    """Writes the report of a search into its folder."""
    sheets = [best_trials(found), what_mattered(found)]
    parts = [f"# Search for {found['model']} on {found['graph']}\n"]
    parts += [f"## {sheet.title}\n\n{markdown(sheet)}" for sheet in sheets if sheet is not None]
    write_text(out / REPORT, "\n".join(parts))


def _note(found: dict[str, Any]) -> str:
    text, name = METRICS[found["metric"]].text, f"val_{found['metric']}"
    states = found["states"]
    start = found[f"{name}_at_start"]
    before = "" if start is None else f" The settings at the start: {text(start)}."
    return (
        f"{found['trials']} trials in {duration(found['seconds'])} of training: "
        f"{states['complete']} complete, {states['pruned']} stopped early, "
        f"{states['failed']} failed.{before}"
    )
