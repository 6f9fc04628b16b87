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


def record(trial: FrozenTrial, metric: str) -> dict[str, Any]:
    """Returns the line of a trial in ``trials.jsonl``: its settings and their result.

    ``val_METRIC`` is the mean of ``values``, which has one value per run. The state is complete,
    pruned (worse than other trials after some of the runs), failed (with ``error``) or interrupted.
    """
    error = trial.user_attrs.get("error")
    return {
        "trial": trial.number,
        "state": STATES[trial.state] if error is None else "failed",
        f"val_{metric}": trial.value,
        "values": trial.user_attrs.get("values", []),
        "settings": decode(trial.params),
        "seconds": trial.user_attrs.get("seconds", 0.0),
        **({} if error is None else {"error": error}),
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
