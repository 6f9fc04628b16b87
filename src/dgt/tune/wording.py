"""The results of trials as text."""

import statistics
from typing import Any

from dgt.config import Config
from dgt.tune.records import describe, record, settings_of
from dgt.tune.trials import Trials


def last(trials: Trials, number: int) -> str:
    """Returns the result of a finished trial as text."""
    trial = trials.trial(number)
    found = record(trial, trials.metric)
    if found["state"] == "failed":
        return f"failed: {found['error']}"
    run, runs = len(found["values"]), len(trials.configs)
    if found["state"] == "complete":
        of = "one run" if runs == 1 else f"mean of {runs} runs"
        return f"val {trials.text(trial.value)}, {of}"
    if "stopped_at_epoch" in found:
        return f"stopped at epoch {found['stopped_at_epoch']} of run {run + 1} of {runs}"
    mean = trials.text(statistics.fmean(found["values"]))
    return f"val {mean}, stopped after {run} of {runs} runs"


def leader(trials: Trials) -> str:
    """Returns the best trial so far, with the settings that differ from those at the start."""
    for best in trials.complete()[:1]:
        changed = changes(settings_of(best), trials.config)
        return f"best {trials.text(best.value)} ({describe(changed) or 'the defaults'})"
    return "no trial is complete yet"


def changes(settings: dict[str, Any], start: Config) -> dict[str, Any]:
    """Returns the settings of a trial that differ from those at the start."""
    before = start.flat() | {"criteria": start.criteria}
    return {name: value for name, value in settings.items() if value != before[name]}
