"""The trials of one search, compared by the metric on validation nodes only.

Optuna chooses the settings of each trial. All trials are trained on the same splits, by successive
halving: every trial is trained on the first split, and after 1, 3, 9, ... splits only the best
third goes on. Only the main process uses Optuna and writes files, so that no two processes write to
the same file.
"""

import json
import math
import random
import statistics
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from dgt.config import Config
from dgt.data import short_name
from dgt.errors import InputError
from dgt.evaluate import METRICS
from dgt.storage.files import write_text
from dgt.tune.figures import importances
from dgt.tune.folder import TRIALS
from dgt.tune.records import STATES, describe, preset, record
from dgt.tune.space import decode, encode, inside, paper_grid, points, suggest
from dgt.tune.worker import Outcome

STARTUP = 5  # random trials before the sampler of Optuna uses earlier results
GRID_POINTS = 8  # points of the paper's grid that are tried before the sampler chooses
HALVING = 3  # one of so many trials goes on
HALVE_FROM = 5  # other trials at a rung before any is stopped there
GIVE_UP = 3  # trials that have all failed with the same error
RESULTS = ("values", "seconds")  # attributes of trials
AGAIN = "again"  # attribute of trials that repeat one whose process was killed
START = "start"  # attribute of trials with settings that were given, which are never stopped
DONE = (TrialState.COMPLETE, TrialState.PRUNED)


def rungs(runs: int) -> list[int]:
    """Returns after how many of its runs a trial is compared with others: 1, 3, 9, and so on."""
    return [HALVING**k for k in range(runs) if HALVING**k < runs]


@dataclass
class Attempt:
    """A running trial."""

    trial: optuna.Trial
    settings: dict[str, Any]
    configs: list[Config]
    """The settings of each run, without the searched ones."""
    values: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def next(self) -> Config:
        """The settings of the next run, without the searched ones."""
        return self.configs[len(self.values)]


@dataclass
class Trials:
    """The trials of one search: an Optuna study, the graph and the settings, and the folder for the
    results."""

    study: optuna.Study
    graph: str
    config: Config
    configs: list[Config]
    """The settings of each run of a trial, without the searched ones."""
    space: dict[str, BaseDistribution]
    out: Path

    @property
    def metric(self) -> str:
        return str(self.config.train.metric)

    def _text(self, value: float | None) -> str:
        return METRICS[self.metric].text(value or 0.0)

    def begin(self, start: Iterable[Config], grid: str | None) -> None:
        """Closes the trials of an interrupted search, and queues the settings to try first.

        Args:
            start: Settings to try first. They are trained on all splits.
            grid: "paper": then try every point of the paper's grid, and not only a few.
        """
        for trial in self._trials(TrialState.RUNNING):  # of a process that was killed
            # Repeat it only once: it may be this trial that runs out of memory.
            self._end(trial, repeat=AGAIN not in trial.user_attrs, again=True)
        for config in start:
            params = inside(encode(config, self.space), self.space)
            self.study.enqueue_trial(params, user_attrs={START: True}, skip_if_exists=True)
        for params in self._points(grid):
            self.study.enqueue_trial(params, skip_if_exists=True)
        self.write()

    def put_back(self, attempt: Attempt) -> None:
        """Ends a running trial and queues its settings again, with the results of its runs."""
        trial = self._trials(*TrialState)[attempt.trial.number]
        self._end(trial, repeat=True, again=AGAIN in trial.user_attrs)
        self.write()

    def _end(self, trial: FrozenTrial, repeat: bool, again: bool) -> None:
        self.study.tell(trial.number, state=TrialState.FAIL)
        if repeat:
            params = trial.system_attrs.get("fixed_params", {}) | trial.params
            kept = {n: v for n, v in trial.user_attrs.items() if n in (START, *RESULTS)}
            self.study.enqueue_trial(params, user_attrs=kept | ({AGAIN: True} if again else {}))

    def _points(self, grid: str | None) -> list[dict[str, Any]]:
        """Returns points of the paper's grid in random order, so that a search that is stopped
        early covers the whole grid."""
        names = paper_grid(self.config.model.model).items()
        found = points({name: values for name, values in names if name in self.space})
        random.Random(self.config.train.seed).shuffle(found)
        if grid:
            return found
        start = encode(self.config, self.space)
        return [inside(start | point, self.space) for point in found[:GRID_POINTS]]

    def planned(self) -> int:
        """Returns the number of finished and queued trials."""
        return len(self._trials(*DONE, TrialState.WAITING))

    @property
    def done(self) -> int:
        """The number of finished trials."""
        return len(self._trials(*DONE))

    def summary(self) -> dict[str, Any]:
        """Returns the results of the search."""
        ranked = self.ranked()
        states = [record(trial, self.metric)["state"] for trial in self._trials(*DONE)]
        if "complete" not in states:
            errors = [t.user_attrs.get("error", "all were stopped") for t in self._trials(*DONE)]
            reason = errors[-1] if errors else "run the same command again to continue"
            raise InputError(f"{self.out}: no trial is complete: {reason}")
        first = [t.value for t in self._trials(TrialState.COMPLETE) if START in t.user_attrs]
        return {
            "graph": self.graph,
            "model": self.config.model.model,
            "metric": self.metric,
            f"val_{self.metric}": ranked[0].value,
            f"val_{self.metric}_at_start": first[0] if first else None,
            "settings": decode(ranked[0].params),
            "preset": str(self._preset),
            "runs": len(self.configs),
            "trials": len(states),
            "states": {state: states.count(state) for state in ("complete", "pruned", "failed")},
            "seconds": sum(t.user_attrs.get("seconds", 0.0) for t in self._trials(*DONE)),
            "best": [record(trial, self.metric) for trial in ranked[:5]],
            "importances": importances(self.study),
        }

    def ask(self) -> Attempt:
        # A new sampler per trial, so that a continued search does not repeat random numbers.
        seed = (self.config.train.seed + len(self._trials(*TrialState))) % 2**32
        self.study.sampler = optuna.samplers.TPESampler(
            n_startup_trials=STARTUP,
            multivariate=True,
            group=True,
            constant_liar=True,
            seed=seed,
        )
        trial = self.study.ask()
        made = Attempt(trial, suggest(trial, self.space, self.config), self.configs)
        if "values" in trial.user_attrs:  # of a trial that was interrupted
            made.values = trial.user_attrs["values"][: len(self.configs) - 1]
            made.seconds = trial.user_attrs["seconds"]
            for step in range(1, len(made.values) + 1):
                trial.report(statistics.fmean(made.values[:step]), step)
        return made

    def add_result(self, attempt: Attempt, future: Future[Outcome]) -> bool:
        """Adds the result of a run to its trial; returns whether the trial needs another run."""
        trial = attempt.trial
        try:
            value, seconds = future.result()
        except InputError as error:
            # The sampler avoids the settings of pruned trials, but ignores failed ones.
            trial.set_user_attr("error", str(error))
            self.study.tell(trial, state=TrialState.PRUNED)
            same = [t.user_attrs.get("error") == str(error) for t in self._trials(*DONE)]
            if len(same) >= GIVE_UP and all(same):
                raise InputError(f"the first {len(same)} trials failed: {error}") from None
            return False
        attempt.values.append(value)
        attempt.seconds += seconds
        trial.set_user_attr("values", attempt.values)
        trial.set_user_attr("seconds", round(attempt.seconds, 2))
        step, mean = len(attempt.values), statistics.fmean(attempt.values)
        trial.report(mean, step)
        if step == len(self.configs):
            self.study.tell(trial, mean)
        elif self._goes_on(attempt, mean):
            return True
        else:
            self.study.tell(trial, state=TrialState.PRUNED)
        return False

    def _goes_on(self, attempt: Attempt, mean: float) -> bool:
        """Returns whether a trial is among the best third of those that got as far as it did."""
        step = len(attempt.values)
        if START in attempt.trial.user_attrs or step not in rungs(len(self.configs)):
            return True
        others = [
            trial.intermediate_values[step]
            for trial in self._trials(*DONE, TrialState.RUNNING)
            if trial.number != attempt.trial.number and step in trial.intermediate_values
        ]
        larger = METRICS[self.metric].larger_is_better
        better = sum(other > mean if larger else other < mean for other in others)
        return len(others) < HALVE_FROM or better < math.ceil((len(others) + 1) / HALVING)

    def _trials(self, *states: TrialState) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=states)

    def ranked(self) -> list[FrozenTrial]:
        """Returns the trials with a result, best first. A trial with more runs comes before one
        with fewer: its mean is more certain, and the other one was stopped."""
        sign = 1 if METRICS[self.metric].larger_is_better else -1

        def place(trial: FrozenTrial) -> tuple[int, float]:
            values = trial.user_attrs["values"]
            return len(values), sign * statistics.fmean(values)

        found = [t for t in self._trials(*DONE) if record(t, self.metric)["state"] != "failed"]
        return sorted((t for t in found if t.user_attrs.get("values")), key=place, reverse=True)

    def _best(self) -> list[FrozenTrial]:
        """Returns the complete trials, best first."""
        return [trial for trial in self.ranked() if trial.state == TrialState.COMPLETE]

    @property
    def _preset(self) -> Path:
        return self.out / f"{short_name(self.graph)}-{self.config.model.model}.toml"

    def write(self) -> None:
        """Writes ``trials.jsonl`` and the best settings from the study."""
        finished = self._trials(*STATES)
        write_text(
            self.out / TRIALS, "".join(json.dumps(record(t, self.metric)) + "\n" for t in finished)
        )
        for best in self._best()[:1]:
            runs = "one run" if len(self.configs) == 1 else f"the mean of {len(self.configs)} runs"
            note = (
                f"# Validation {self.metric} {self._text(best.value)}, {runs}: "
                f"the best of {len(self._trials(*DONE))} trials of dgt tune.\n"
            )
            write_text(self._preset, note + preset(self.config.replace(**decode(best.params))))

    def last(self, number: int) -> str:
        trial = record(self._trials(*TrialState)[number], self.metric)
        if trial["state"] == "failed":
            return f"failed: {trial['error']}"
        after = f", pruned after {len(trial['values'])} of {len(self.configs)} runs"
        value = self._text(trial[f"val_{self.metric}"])
        return f"val {value}{after if trial['state'] == 'pruned' else ''}"

    def leader(self) -> str:
        """Returns the best trial so far, with the settings that differ from those at the start."""
        start = self.config.flat() | {"criteria": self.config.criteria}
        for best in self._best()[:1]:
            changed = {k: v for k, v in decode(best.params).items() if v != start[k]}
            settings = describe(changed) or "the settings at the start"
            return f"best {self._text(best.value)} ({settings})"
        return "no trial is complete yet"
