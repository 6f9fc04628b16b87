"""The figures of a search: its history, and the importance of each setting."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import optuna
from matplotlib.figure import Figure
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from dgt.report.plots import save

HISTORY, IMPORTANCE = "history.png", "importance.png"
# Trials before importances are meaningful.
IMPORTANCE_FROM = 20
BEST_SHARE = 0.25
COLOR, BEST, SOFT = "tab:blue", "tab:red", "0.9"


def importances(ranked: Sequence[FrozenTrial]) -> dict[str, float]:
    """Returns how much each setting decides whether a trial is among the best quarter.

    Args:
        ranked: The trials, best first. Only their order counts, so that no value of a trial that
            was stopped is compared with one of a trial that went on.
    """
    if len(ranked) < IMPORTANCE_FROM:
        return {}
    ordered = optuna.create_study(direction="minimize")
    for place, trial in enumerate(ranked):
        ordered.add_trial(
            optuna.create_trial(
                params=trial.params, distributions=trial.distributions, value=float(place)
            )
        )
    # Unlike the default evaluator, it needs no package besides Optuna.
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=BEST_SHARE)
    return optuna.importance.get_param_importances(ordered, evaluator=evaluator)


def write_figures(study: optuna.Study, found: dict[str, Any], out: Path) -> None:
    """Writes the history of a search and, if there are enough trials, the importances.

    Args:
        study: The study.
        found: The result of the search.
        out: Folder of the search.
    """
    save(history(study, found["metric"]), out / HISTORY)
    if found["importances"]:
        save(bars(found["importances"]), out / IMPORTANCE)


def history(study: optuna.Study, metric: str) -> Figure:
    """Draws the result of each complete trial, and the best one so far."""
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    numbers = [trial.number for trial in trials]
    values = [trial.value for trial in trials if trial.value is not None]
    better = max if study.direction == StudyDirection.MAXIMIZE else min
    figure = Figure(figsize=(6.4, 3.6))
    axis = figure.subplots()
    axis.scatter(numbers, values, s=16, color=COLOR, label="trial", zorder=3)
    best = list(accumulate(values, better))
    axis.step(numbers, best, where="post", color=BEST, label="best so far", zorder=2)
    axis.set_xlabel("trial")
    axis.set_ylabel(f"validation {metric}")
    axis.grid(color=SOFT)
    axis.legend(frameon=False)
    return figure


def bars(shares: dict[str, float]) -> Figure:
    """Draws the importance of each setting."""
    names, values = list(shares)[::-1], list(shares.values())[::-1]
    figure = Figure(figsize=(6.4, 1 + 0.28 * len(names)))
    axis = figure.subplots()
    drawn = axis.barh(names, values, color=COLOR)
    axis.bar_label(drawn, [f"{value:.0%}" for value in values], padding=3, fontsize="small")
    axis.set_xlabel("how much the setting decides whether a trial is among the best quarter")
    axis.margins(x=0.12)
    return figure
