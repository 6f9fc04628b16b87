"""The figures of a search."""

from pathlib import Path

import optuna
import pytest

from dgt.tune.display import quiet
from dgt.tune.figures import HISTORY, IMPORTANCE, bars, history, importances, write_figures


def study(trials: int, direction: str = "maximize") -> optuna.Study:
    with quiet():
        made = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(0))
        made.optimize(
            lambda trial: trial.suggest_float("lr", 0, 1) + 0.01 * trial.suggest_int("keys", 1, 4),
            n_trials=trials,
        )
    return made


@pytest.mark.parametrize(("direction", "better"), [("maximize", max), ("minimize", min)])
def test_history_shows_each_trial_and_the_best_so_far(direction: str, better):
    found = study(7, direction)
    (axis,) = history(found, "accuracy").axes
    values = [trial.value for trial in found.trials]
    assert axis.collections[0].get_offsets()[:, 1].tolist() == pytest.approx(values)
    best = [better(values[: i + 1]) for i in range(7)]
    assert axis.lines[0].get_ydata().tolist() == pytest.approx(best)


def test_importances_need_enough_trials(tmp_path: Path):
    for trials, files in ((3, {HISTORY}), (25, {HISTORY, IMPORTANCE})):
        found = study(trials)
        with quiet():
            shares = importances(sorted(found.trials, key=lambda t: t.value, reverse=True))
        write_figures(found, {"metric": "accuracy", "importances": shares}, tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == files
    assert max(shares, key=lambda name: shares[name]) == "lr"
    (axis,) = bars(shares).axes
    assert [bar.get_width() for bar in axis.patches] == pytest.approx(list(shares.values())[::-1])
