"""The report of a search: what it gained, the best trials, and which settings mattered."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dgt.evaluate import METRICS
from dgt.report.sheet import Sheet, markdown
from dgt.storage.files import write_text
from dgt.system.progress import duration
from dgt.tune.figures import importances
from dgt.tune.final import Final, changed, is_better, source
from dgt.tune.records import describe, record, settings_of
from dgt.tune.trials import DONE

REPORT = "report.md"


def summary(final: Final) -> dict[str, Any]:
    """Writes the chosen settings, and returns the results of a search."""
    trials, decision = final.trials, final.decide()
    metric, chosen, own = trials.metric, decision.chosen, decision.defaults
    states = [record(trial, metric)["state"] for trial in trials.all(*DONE)]
    seconds = sum(trial.user_attrs.get("seconds", 0.0) for trial in trials.all(*DONE))
    return {
        "graph": trials.graph,
        "model": trials.config.model.model,
        "metric": metric,
        f"val_{metric}": chosen.mean,
        f"val_{metric}_std": chosen.std,
        f"val_{metric}_at_start": None if own is None else own.mean,
        "better": is_better(decision),
        "fresh": decision.fresh,
        "settings": settings_of(chosen.trial),
        "changed": changed(final, chosen),
        "preset": final.write_preset(decision),
        "note": final.note(decision),
        "runs": len(trials.configs),
        "final_runs": len(chosen.values) if decision.fresh else 0,
        "final": [
            {
                "trial": each.trial.number,
                "source": source(each),
                f"val_{metric}": each.mean,
                "values": each.values,
                "by_run": final.by_run(each.trial),
                "changed": changed(final, each),
            }
            for each in decision.candidates
        ],
        "trials": len(states),
        "states": {state: states.count(state) for state in ("complete", "pruned", "failed")},
        "seconds": seconds + final.seconds(cpu=False),
        "best": [record(trial, metric) for trial in trials.complete()[:5]],
        "importances": importances(trials.ranked()),
    }


def verdict(found: dict[str, Any]) -> str:
    """Returns what the search has gained, in words."""
    metric, name = found["metric"], f"val_{found['metric']}"
    text, before = METRICS[metric].text, found[f"{name}_at_start"]
    values = found["final"][0]["values"]
    runs = "one run" if len(values) == 1 else f"{len(values)} runs"
    where = runs.replace(" run", " further run") if found["fresh"] else f"{runs} of the search"
    if before is None:
        return (
            f"Best settings: val {metric} {text(found[name])} in {where}. The defaults were not "
            "tried, so that it is not known what is gained."
        )
    if not found["better"]:
        return (
            f"No settings are better than the defaults: val {metric} {text(before)} in {where}. "
            "The defaults are kept."
        )
    (own,) = (each for each in found["final"] if each["source"] == "defaults")
    larger = METRICS[metric].larger_is_better
    wins = sum(a > b if larger else a < b for a, b in zip(values, own["values"], strict=True))
    found_by = f"Best settings: val {metric} {text(found[name])}, defaults {text(before)}"
    caution = (
        "" if found["fresh"] else " These runs also chose the settings, so that the gain is "
        "likely smaller; more time allows for a final comparison."
    )  # fmt: skip
    return f"{found_by}, better in {wins} of {len(values)}: the means of {where}.{caution}"


def final_comparison(found: dict[str, Any]) -> Sheet:
    """Lays out the finalists of a search, in the same runs."""
    title = "Final comparison" if found["fresh"] else "Comparison in the runs of the search"
    rows = [
        (
            each["trial"],
            (each["source"],),
            each["values"],
            describe(each["changed"]) or "the defaults",
        )
        for each in found["final"]
    ]
    columns = ("trial", "from", f"val {found['metric']}", "std", "differs from the defaults in")
    return _trials(found, title, columns, rows, (verdict(found), _note(found)), found["final"])


def best_trials(found: dict[str, Any]) -> Sheet:
    """Lays out the best complete trials of a search."""
    runs = "one run" if found["runs"] == 1 else f"the same {found['runs']} runs"
    note = f"Means of {runs} for each trial. Trials that were stopped early are not listed."
    rows = [(t["trial"], (), t["values"], describe(t["settings"])) for t in found["best"]]
    columns = ("trial", f"val {found['metric']}", "std", "settings")
    return _trials(found, "Best trials", columns, rows, (note,), found["best"])


def _trials(
    found: dict[str, Any],
    title: str,
    columns: tuple[str, ...],
    trials: Sequence[tuple[int, tuple[str, ...], list[float], str]],
    notes: tuple[str, ...],
    numbers: list[dict[str, Any]],
) -> Sheet:
    """Lays out trials: the number of each, further cells, its values and its settings."""
    text = METRICS[found["metric"]].text
    rows: list[tuple[str, ...]] = []
    for number, cells, values, settings in trials:
        mean = text(statistics.fmean(values))
        spread = text(statistics.stdev(values)) if len(values) > 1 else "–"
        rows.append((str(number), *cells, mean, spread, settings))
    return Sheet(title, columns, rows, notes, numbers, labels=len(columns))


def what_mattered(found: dict[str, Any]) -> Sheet | None:
    """Lays out the importance of each setting, if there were enough trials."""
    if not found["importances"]:
        return None
    rows: list[tuple[str, ...]] = [
        (name, f"{share:.0%}") for name, share in found["importances"].items()
    ]
    note = (
        "Importance: how much the values of a setting in the best quarter of the trials differ "
        "from those in all trials (PED-ANOVA), in percent of the sum."
    )
    numbers = [found["importances"]]
    return Sheet("What mattered", ("setting", "importance"), rows, (note,), numbers, labels=1)


def write_report(found: dict[str, Any], out: Path) -> None:
    """Writes the report of a search into its folder."""
    sheets = [final_comparison(found), best_trials(found), what_mattered(found)]
    parts = [f"# Search for {found['model']} on {found['graph']}\n"]
    parts += [f"## {sheet.title}\n\n{markdown(sheet)}" for sheet in sheets if sheet is not None]
    write_text(out / REPORT, "\n".join(parts))


def _note(found: dict[str, Any]) -> str:
    states, count = found["states"], found["trials"]
    trials = "one trial" if count == 1 else f"{count} trials"
    return (
        f"{trials} in {duration(found['seconds'])} of training: "
        f"{states['complete']} complete, {states['pruned']} stopped early, "
        f"{states['failed']} failed."
    )
