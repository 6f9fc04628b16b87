"""What a search leaves to be read: its trials, a line each, and the best settings as a file."""

import json
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from dgt.config import Config
from dgt.tune.space import decode

# Optuna's states of trials that are over. One fails when its process is killed in the middle of it.
STATES = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "interrupted",
}


def record(trial: FrozenTrial) -> dict[str, Any]:
    """A trial's line in ``trials.jsonl``: the settings that were searched and what came of them.

    ``val_accuracy`` is the mean of ``val_accuracies``, one for each run. The state is complete,
    pruned (it was behind after some of the runs), failed (with the ``error``) or interrupted.
    """
    error = trial.user_attrs.get("error")
    return {
        "trial": trial.number,
        "state": STATES[trial.state] if error is None else "failed",
        "val_accuracy": trial.value,
        "val_accuracies": trial.user_attrs.get("val_accuracies", []),
        "settings": decode(trial.params),
        "seconds": trial.user_attrs.get("seconds", 0.0),
        **({} if error is None else {"error": error}),
    }


def preset(config: Config) -> str:
    """All settings as TOML, so that other defaults will not change them; no seed and no splits."""
    lines = []
    for table, values in config.to_dict().items():
        kept = (name for name in values if name not in ("seed", "split", "splits"))
        lines += [f"[{table}]", *(f"{name} = {json.dumps(values[name])}" for name in kept), ""]
    return "\n".join(lines)


def describe(settings: dict[str, Any]) -> str:
    """Settings in a line."""
    return ", ".join(
        f"{name} {' '.join(value) if isinstance(value, list | tuple) else value}"
        for name, value in settings.items()
    )
