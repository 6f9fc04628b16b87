"""The trials of a search, compared by the metric on validation nodes only.

Optuna chooses the settings of each trial. All trials are trained on the same splits, one after the
other; a trial is pruned when it is worse than the others. Worker processes only train. The main
process alone uses Optuna and writes files, so that no two processes write to the same file.
"""

import json
import random
import statistics
import sys
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from dgt.config import Config
from dgt.data import load, short_name
from dgt.errors import InputError
from dgt.evaluate import METRICS
from dgt.runs.many import canonical
from dgt.runs.plan import plan_on
from dgt.storage.files import write_text
from dgt.system.workers import cores, processes
from dgt.training.problem import Problem
from dgt.tune.display import display, quiet
from dgt.tune.figures import importances, write_figures
from dgt.tune.folder import TRIALS, claim, identity
from dgt.tune.records import STATES, describe, preset, record
from dgt.tune.space import decode, encode, points, search_space, suggest
from dgt.tune.worker import Outcome, train_once

DEFAULT_TRIALS = 50
STARTUP = 5  # random trials before the sampler of Optuna uses earlier results
PRUNE_FROM = 5  # complete trials before trials are pruned
IMPORTANCE_FROM = 20  # complete trials before importances are meaningful
GIVE_UP = 3  # trials that have all failed with the same error
DONE = (TrialState.COMPLETE, TrialState.PRUNED)


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
    """Searches for the best settings, or continues the search in ``out``.

    Args:
        graph: Name of a benchmark, or a path.
        config: The settings that are not searched, and the settings of the first trial. Its seed
            is also the seed of the search.
        out: Folder for the files of the search.
        fixed: Names of settings that keep their value in ``config``.
        grid: "paper": try every point of the paper's grid once, instead of sampling.
        runs: Number of runs per trial, see :func:`dgt.runs.plan.plan`.
        start: Additional settings that are tried first.
        trials: Total number of trials, including earlier ones in ``out`` (default: 50, or the whole
            grid).
        workers: Number of processes (default: one per core).
        progress: Show progress on stderr.

    Returns:
        The best settings, the file with them, the best trials and the importance of each setting.
    """
    data = load(graph, config.train.splits, config.data)
    config = config.replace(metric=Problem.of(data, config).facts.metric)
    configs = plan_on(data, config, runs)
    space = search_space(config, grid, fixed)
    with quiet(), claim(out, identity(canonical(graph), config, space, grid, runs)) as study:
        work = _Search(study, canonical(graph), config, configs, space, out)
        first = [encode(each, space) for each in (config, *start)]
        work.begin(points(space) if grid else first)
        if grid:
            trials = min(trials or sys.maxsize, work.planned())
        work.run(DEFAULT_TRIALS if trials is None else trials, workers or cores(), progress)
        found = work.summary()
        write_figures(study, found, out)
        return found


@dataclass
class _Attempt:
    """A running trial."""

    trial: optuna.Trial
    settings: dict[str, Any]
    values: list[float] = field(default_factory=list)
    seconds: float = 0.0


@dataclass
class _Search:
    """An Optuna study, the graph and settings of its trials, and the folder for the results."""

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

    def begin(self, first: list[dict[str, Any]]) -> None:
        """Closes the trials of an interrupted search, and queues the settings to try first."""
        for trial in self._trials(TrialState.RUNNING):
            self.study.tell(trial.number, state=TrialState.FAIL)
            # Repeat it only once: it may be this trial that runs out of memory.
            if "again" not in trial.user_attrs:
                params = trial.system_attrs.get("fixed_params", trial.params)
                self.study.enqueue_trial(params, user_attrs={"again": True})
        # Shuffled, so that a search that is stopped early covers the whole grid.
        random.Random(self.config.train.seed).shuffle(first)
        for params in first:
            self.study.enqueue_trial(params, skip_if_exists=True)
        self._write()

    def planned(self) -> int:
        """Returns the number of finished and queued trials."""
        return len(self._trials(*DONE, TrialState.WAITING))

    def run(self, total: int, workers: int, progress: bool) -> None:
        """Trains until ``total`` trials are finished."""
        done = len(self._trials(*DONE))
        if done >= total:
            return
        running: dict[Future[Outcome], _Attempt] = {}
        with processes(workers) as pool, display(done, total, progress) as show:

            def train(attempt: _Attempt) -> None:
                config = self.configs[len(attempt.values)]
                task = pool.submit(train_once, self.graph, config, attempt.settings)
                running[task] = attempt

            while done < total:
                while len(running) < min(workers, total - done):
                    train(self._ask())
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    attempt = running.pop(future)
                    if self._add_result(attempt, future):
                        train(attempt)
                        continue
                    done += 1
                    self._write()
                    show(done, self._last(attempt.trial.number), self._leader())

    def summary(self) -> dict[str, Any]:
        """Returns the results of the search."""
        best = self._best()
        if not best:
            errors = [t.user_attrs.get("error", "all were pruned") for t in self._trials(*DONE)]
            raise InputError(f"{self.out}: no trial is complete: {errors[-1]}")
        return {
            "graph": self.graph,
            "model": self.config.model.model,
            "metric": self.metric,
            f"val_{self.metric}": best[0].value,
            "settings": decode(best[0].params),
            "preset": str(self._preset),
            "runs": len(self.configs),
            "trials": len(self._trials(*DONE)),
            "best": [record(trial, self.metric) for trial in best[:5]],
            "importances": importances(self.study),
        }

    def _ask(self) -> _Attempt:
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
        return _Attempt(trial, suggest(trial, self.space, self.config))

    def _add_result(self, attempt: _Attempt, future: Future[Outcome]) -> bool:
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
        elif self._behind(mean, step):
            self.study.tell(trial, state=TrialState.PRUNED)
        else:
            return True
        return False

    def _behind(self, mean: float, step: int) -> bool:
        """Returns whether a mean is worse than the median of complete trials after as many runs.

        Optuna's median pruner compares the best of a trial's means so far instead. If the first
        split is the easiest, it never prunes after a later one.
        """
        others = [t.intermediate_values[step] for t in self._trials(TrialState.COMPLETE)]
        if len(others) < PRUNE_FROM:
            return False
        median = statistics.median(others)
        return mean < median if METRICS[self.metric].larger_is_better else mean > median

    def _trials(self, *states: TrialState) -> list[FrozenTrial]:
        return self.study.get_trials(deepcopy=False, states=states)

    def _best(self) -> list[FrozenTrial]:
        """Returns the complete trials, best first."""
        complete = self._trials(TrialState.COMPLETE)
        largest_first = METRICS[self.metric].larger_is_better
        return sorted(complete, key=lambda trial: trial.value or 0.0, reverse=largest_first)

    @property
    def _preset(self) -> Path:
        return self.out / f"{short_name(self.graph)}-{self.config.model.model}.toml"

    def _write(self) -> None:
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

    def _last(self, number: int) -> str:
        trial = record(self._trials(*TrialState)[number], self.metric)
        if trial["state"] == "failed":
            return f"failed: {trial['error']}"
        after = f", pruned after {len(trial['values'])} of {len(self.configs)} runs"
        value = self._text(trial[f"val_{self.metric}"])
        return f"val {value}{after if trial['state'] == 'pruned' else ''}"

    def _leader(self) -> str:
        """Returns the best trial so far, with the settings that differ from those at the start."""
        start = self.config.flat() | {"criteria": self.config.criteria}
        for best in self._best()[:1]:
            changed = {k: v for k, v in decode(best.params).items() if v != start[k]}
            settings = describe(changed) or "the settings at the start"
            return f"best {self._text(best.value)} ({settings})"
        return "no trial is complete yet"
