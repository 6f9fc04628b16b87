"""Trials of settings, judged by validation accuracy alone.

Optuna chooses the settings of a trial. The trial is trained on a few splits, one after the other,
the same ones for every trial, and is given up when it falls behind. Worker processes train; this
one alone asks, judges and writes, so that no two of them ever meet in a file.
"""

import functools
import json
import random
import statistics
import sys
import time
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState
from torch_geometric.data import Data

from dgt.config import Config
from dgt.datasets import load, short_name
from dgt.errors import InputError
from dgt.estimator import NodeClassifier
from dgt.files import write_text
from dgt.runs import canonical, plan
from dgt.splits import choose
from dgt.tune.display import display, quiet
from dgt.tune.folder import TRIALS, claim, identity
from dgt.tune.records import STATES, describe, preset, record
from dgt.tune.space import decode, encode, flat, points, search_space, suggest
from dgt.workers import cores, processes

DEFAULT_TRIALS = 50
# Trials by chance before Optuna's sampler makes use of what it has seen.
STARTUP = 5
# Complete trials before one may be given up, and before importances say anything.
PRUNE_FROM = 5
IMPORTANCE_FROM = 20
DONE = (TrialState.COMPLETE, TrialState.PRUNED)

Outcome = tuple[float, float]
"""The validation accuracy of a run, and its seconds."""


def search(
    graph: str,
    config: Config,
    out: Path,
    *,
    fixed: tuple[str, ...] = (),
    grid: str | None = None,
    runs: int = 3,
    start: Iterable[Config] = (),
    trials: int | None = None,
    workers: int | None = None,
    progress: bool = False,
) -> dict[str, Any]:
    """Searches for settings, or goes on with the search in ``out``.

    Args:
        graph: A benchmark's name or a path.
        config: The settings that are not searched, and those of the first trial. Its seed is also
            that of the search.
        out: Folder for the search's files.
        fixed: Names of settings that keep their value of ``config``.
        grid: "paper": every point of the paper's grid once, instead of Optuna's choice.
        runs: Runs that a trial's accuracy is the mean of, as :func:`dgt.runs.plan` has them.
        start: Further settings that are tried first.
        trials: Trials in all, earlier ones in ``out`` included (default: 50, or the whole grid).
        workers: Number of processes (default: one for each core).
        progress: Show progress on stderr.

    Returns:
        The best settings, the file they are in, the best trials and how much each setting matters.
    """
    data = load(graph, config.train.splits)
    configs = plan(data, config, runs)
    for each in configs:
        choose(data, each.train.splits, each.train.split_index)
    space = search_space(config, grid, fixed)
    with quiet(), claim(out, identity(canonical(graph), config, space, grid, runs)) as study:
        work = _Search(study, canonical(graph), config, configs, space, out)
        first = [encode(each, space) for each in (config, *start)]
        work.begin(points(space) if grid else first)
        if grid:
            trials = min(trials or sys.maxsize, work.planned())
        work.run(DEFAULT_TRIALS if trials is None else trials, workers or cores(), progress)
        return work.summary()


@functools.cache
def _graph(graph: str, splits: str) -> Data:
    return load(graph, splits)


def train_once(graph: str, config: Config, settings: dict[str, Any]) -> Outcome:
    """Trains on a graph; of its accuracies, only that on validation nodes leaves the worker."""
    started = time.monotonic()
    data = _graph(graph, config.train.splits)
    classifier = NodeClassifier(config, **settings).fit(data, graph=graph)
    return classifier.metrics_["val_accuracy"], time.monotonic() - started


@dataclass
class _Attempt:
    """A trial that is being trained."""

    trial: optuna.Trial
    settings: dict[str, Any]
    accuracies: list[float] = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class _Search:
    """A study, what its trials are trained on and where they are recorded."""

    study: optuna.Study
    graph: str
    config: Config
    configs: list[Config]
    """Those of each run."""
    space: dict[str, BaseDistribution]
    out: Path

    def begin(self, first: list[dict[str, Any]]) -> None:
        """Settles what an interrupted search has left, and queues what is to be tried first."""
        for trial in self._trials(TrialState.RUNNING):
            self.study.tell(trial.number, state=TrialState.FAIL)
            # Once more, but not for ever: it may be this trial that takes too much memory.
            if "again" not in trial.user_attrs:
                params = trial.system_attrs.get("fixed_params", trial.params)
                self.study.enqueue_trial(params, user_attrs={"again": True})
        # In any order, so that an early end leaves no corner out.
        random.Random(self.config.train.seed).shuffle(first)
        for params in first:
            self.study.enqueue_trial(params, skip_if_exists=True)
        self._write()

    def planned(self) -> int:
        """Trials that are done or queued."""
        return len(self._trials(*DONE, TrialState.WAITING))

    def run(self, total: int, workers: int, progress: bool) -> None:
        """Trains until ``total`` trials are done."""
        done = len(self._trials(*DONE))
        if done >= total:
            return
        running: dict[Future[Outcome], _Attempt] = {}
        with processes(workers) as pool, display(done, total, progress) as show:

            def train(attempt: _Attempt) -> None:
                config = self.configs[len(attempt.accuracies)]
                task = pool.submit(train_once, self.graph, config, attempt.settings)
                running[task] = attempt

            while done < total:
                while len(running) < min(workers, total - done):
                    train(self._ask())
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    attempt = running.pop(future)
                    if self._goes_on(attempt, future):
                        train(attempt)
                        continue
                    done += 1
                    self._write()
                    show(done, self._last(attempt.trial.number), self._leader())

    def summary(self) -> dict[str, Any]:
        """What came of the search."""
        best = self._best()
        if not best:
            errors = [t.user_attrs.get("error", "all are behind") for t in self._trials(*DONE)]
            raise InputError(f"{self.out}: no trial is complete: {errors[-1]}")
        return {
            "graph": self.graph,
            "model": self.config.model.model,
            "val_accuracy": best[0].value,
            "settings": decode(best[0].params),
            "preset": str(self._preset),
            "runs": len(self.configs),
            "trials": len(self._trials(*DONE)),
            "best": [record(trial) for trial in best[:5]],
            "importances": self._importances(),
        }

    def _ask(self) -> _Attempt:
        # A sampler for each trial, so that a search that goes on does not draw the same again.
        seed = (self.config.train.seed + len(self._trials(*TrialState))) % 2**32
        self.study.sampler = optuna.samplers.TPESampler(
            n_startup_trials=STARTUP,
            multivariate=True,
            group=True,
            constant_liar=True,
            seed=seed,
        )
        trial = self.study.ask()
        return _Attempt(trial, suggest(trial, self.space, self.config))

    def _goes_on(self, attempt: _Attempt, future: Future[Outcome]) -> bool:
        """Takes up what a run has come to; returns whether the trial has another one to go."""
        trial = attempt.trial
        try:
            accuracy, seconds = future.result()
        except InputError as error:
            # Pruned, not failed: the sampler learns from it to keep away from such settings.
            trial.set_user_attr("error", str(error))
            self.study.tell(trial, state=TrialState.PRUNED)
            return False
        attempt.accuracies.append(accuracy)
        attempt.seconds += seconds
        trial.set_user_attr("val_accuracies", attempt.accuracies)
        trial.set_user_attr("seconds", round(attempt.seconds, 2))
        step, mean = len(attempt.accuracies), statistics.fmean(attempt.accuracies)
        trial.report(mean, step)
        if step == len(self.configs):
            self.study.tell(trial, mean)
        elif self._behind(mean, step):
            self.study.tell(trial, state=TrialState.PRUNED)
        else:
            return True
        return False

    def _behind(self, mean: float, step: int) -> bool:
        """Whether a mean is below the median of the complete trials after as many runs.

        Optuna's own pruner takes the best of a trial's means so far instead: where the first split
        is the easiest, it would give up no trial after the later ones.
        """
        others = [t.intermediate_values[step] for t in self._trials(TrialState.COMPLETE)]
        return len(others) >= PRUNE_FROM and mean < statistics.median(others)

    def _trials(self, *states: TrialState) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=states)

    def _best(self) -> list[FrozenTrial]:
        """The complete trials, the best first."""
        complete = self._trials(TrialState.COMPLETE)
        return sorted(complete, key=lambda trial: trial.value or 0.0, reverse=True)

    def _importances(self) -> dict[str, float]:
        if len(self._trials(TrialState.COMPLETE)) < IMPORTANCE_FROM:
            return {}
        # The one evaluator of Optuna's that needs no other package.
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        return optuna.importance.get_param_importances(self.study, evaluator=evaluator)

    @property
    def _preset(self) -> Path:
        return self.out / f"{short_name(self.graph)}-{self.config.model.model}.toml"

    def _write(self) -> None:
        """Writes ``trials.jsonl`` and the best settings, both as the study has them."""
        over = self._trials(*STATES)
        write_text(self.out / TRIALS, "".join(json.dumps(record(t)) + "\n" for t in over))
        for best in self._best()[:1]:
            runs = "one run" if len(self.configs) == 1 else f"the mean of {len(self.configs)} runs"
            note = (
                f"# Validation accuracy {best.value:.2%}, {runs}: "
                f"the best of {len(self._trials(*DONE))} trials of dgt tune.\n"
            )
            write_text(self._preset, note + preset(self.config.replace(**decode(best.params))))

    def _last(self, number: int) -> str:
        trial = record(self._trials(*TrialState)[number])
        if trial["state"] == "failed":
            return f"failed: {trial['error']}"
        after = f", pruned after {len(trial['val_accuracies'])} of {len(self.configs)} runs"
        return f"val {trial['val_accuracy']:.2%}{after if trial['state'] == 'pruned' else ''}"

    def _leader(self) -> str:
        """The best trial so far, and the settings in which it is unlike the start."""
        start = flat(self.config) | {"criteria": self.config.criteria}
        for best in self._best()[:1]:
            changed = {k: v for k, v in decode(best.params).items() if v != start[k]}
            return f"best {best.value:.2%} ({describe(changed) or 'the settings at the start'})"
        return "none is complete yet"
