"""What a search writes: one line per trial, and the best settings as a TOML file."""

from typing import Any

from optuna.trial import FrozenTrial, TrialState

from dgt.config import Config, to_toml
from dgt.tune.space import decode

# Finished trials in Optuna. A trial is in state FAIL if its process was killed.
STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "interrupted",
}
START = "start"  # attribute of trials with given settings, which are never stopped: their source
DEFAULTS, GIVEN, PRESET = "defaults", "given", "preset"
EXACT = "exact"  # attribute of trials with given settings: those outside of the search space


def settings_of(trial: FrozenTrial) -> dict[str, Any]:
    """Returns the searched settings of a trial."""
    return exact_settings(trial.params, trial.user_attrs.get(EXACT, {}))


def exact_settings(params: dict[str, Any], exact: dict[str, Any]) -> dict[str, Any]:
    """Returns the settings of a trial, by its parameters in Optuna and its attribute ``exact``."""
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in exact.items()}
    return decode(params) | given


def record(trial: FrozenTrial, metric: str) -> dict[str, Any]:
    """Returns the line of a trial in ``trials.jsonl``: its settings and their result.

    ``values`` has one value per finished run, and ``val_METRIC``, of complete trials only, is their
    mean. ``rungs`` has the best value so far at some epochs of each run. The state is complete,
    pruned (worse than other trials after some of the runs, or at an epoch of a run), failed (with
    ``error``) or interrupted.
    """
    attributes = trial.user_attrs
    error = attributes.get("error")
    kept = ("start", "rungs", "stopped_at_epoch", "error")
    return {
        "trial": trial.number,
        "state": STATES[trial.state] if error is None else "failed",
        f"val_{metric}": trial.value if trial.state == TrialState.COMPLETE else None,
        "values": attributes.get("values", []),
        "settings": settings_of(trial),
        "seconds": attributes.get("seconds", 0.0),
        **{name: attributes[name] for name in kept if name in attributes},
    }


def preset(config: Config) -> str:
    """Returns settings as TOML, without those of a single run: seed, splits and device.

    All others are written, so that the file does not depend on defaults.
    """
    tables = config.to_dict()
    for name in ("seed", "split", "splits", "device"):
        tables["train"].pop(name, None)
    return to_toml(tables)


def describe(settings: dict[str, Any]) -> str:
    """Returns settings as one line of text."""
    return ", ".join(
        f"{name} {' '.join(value) if isinstance(value, list | tuple) else value}"
        for name, value in settings.items()
    )
