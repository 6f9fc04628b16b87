"""The trials of one search, compared by the metric on validation nodes only.

Optuna chooses the settings of each trial. All trials are trained on the same splits, by successive
halving over epochs and splits, see :mod:`dgt.tune.rungs`. Only the main process uses Optuna and
writes files, so that no two processes write to the same file.
"""

import json
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from dgt.config import Config
from dgt.errors import InputError
from dgt.evaluate import METRICS
from dgt.storage.files import write_text
from dgt.tune import rungs
from dgt.tune.folder import TRIALS
from dgt.tune.records import (
    DEFAULTS,
    EXACT,
    START,
    STATES,
    exact_settings,
    record,
)
from dgt.tune.space import suggest
from dgt.tune.start import as_trial, first_points
from dgt.tune.worker import Job, Outcome

STARTUP = 5  # random trials before the sampler of Optuna uses earlier results
GIVE_UP = 3  # trials that have all failed with the same error
RESULTS = ("values", "seconds", "cpu_seconds", "rungs")  # attributes of trials
AGAIN = "again"  # attribute of trials that repeat one whose process was killed
DONE = (TrialState.COMPLETE, TrialState.PRUNED)


@dataclass
class Attempt:
    """A running trial."""

    trial: optuna.Trial
    settings: dict[str, Any]
    values: list[float] = field(default_factory=list)
    """The value of each finished run."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    rungs: list[dict[str, float]] = field(default_factory=list)
    """For each run, the best value so far by epoch."""


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
    then: list[dict[str, Any]] = field(default_factory=list)
    """Points to try after all queued trials. Interrupted trials, which are queued again, thus come
    before them."""

    @property
    def metric(self) -> str:
        return str(self.config.train.metric)

    @property
    def larger_is_better(self) -> bool:
        return METRICS[self.metric].larger_is_better

    def text(self, value: float | None) -> str:
        return METRICS[self.metric].text(value or 0.0)

    def begin(self, start: dict[str, list[Config]], grid: str | None) -> None:
        """Closes the trials of an interrupted search, and queues the settings to try first.

        Args:
            start: Settings to try first, by their source. They are trained on all splits.
            grid: "paper": then try every point of the paper's grid, and not only a few.
        """
        for trial in self.all(TrialState.RUNNING):  # of a process that was killed
            # Repeat it only once: it may be this trial that runs out of memory.
            self._end(trial, repeat=AGAIN not in trial.user_attrs, again=True)
        for source, configs in start.items():
            for config in configs:
                self._queue(config, source, anywhere=grid is None)
        self.then = first_points(self.config, self.space, grid)
        while grid and self.then:
            self._queue_next()
        self.write()

    def _queue_next(self) -> None:
        """Queues the next of the points to try, unless it has been tried."""
        self.study.enqueue_trial(self.then.pop(0), skip_if_exists=True)

    def _queue(self, config: Config, source: str, anywhere: bool) -> None:
        """Queues given settings, unless they have been tried. Those that are not in the search
        space are set all the same, and the sampler takes them for the defaults.

        Args:
            config: The settings.
            source: Where they come from.
            anywhere: Whether settings outside of the search space are allowed.
        """
        params, exact = as_trial(config, self.config, self.space)
        if exact and not anywhere:
            return
        wanted = exact_settings(params, exact)
        for trial in self.all(*TrialState):
            params_of = trial.system_attrs.get("fixed_params", {}) | trial.params
            if exact_settings(params_of, trial.user_attrs.get(EXACT, {})) == wanted:
                return
        attributes: dict[str, Any] = {START: source} | ({EXACT: exact} if exact else {})
        self.study.enqueue_trial(params, user_attrs=attributes)

    def put_back(self, attempt: Attempt) -> None:
        """Ends a running trial and queues its settings again, with the results of its runs."""
        trial = self.trial(attempt.trial.number)
        self._end(trial, repeat=True, again=AGAIN in trial.user_attrs)
        self.write()

    def _end(self, trial: FrozenTrial, repeat: bool, again: bool) -> None:
        self.study.tell(trial.number, state=TrialState.FAIL)
        if repeat:
            params = trial.system_attrs.get("fixed_params", {}) | trial.params
            kept = {n: v for n, v in trial.user_attrs.items() if n in (START, EXACT, *RESULTS)}
            self.study.enqueue_trial(params, user_attrs=kept | ({AGAIN: True} if again else {}))

    def planned(self) -> int:
        """Returns the number of finished and queued trials."""
        return len(self.all(*DONE, TrialState.WAITING))

    @property
    def done(self) -> int:
        """The number of finished trials."""
        return len(self.all(*DONE))

    def ask(self) -> Attempt:
        """Starts the next trial."""
        while self.then and not self.all(TrialState.WAITING):
            self._queue_next()
        # A new sampler per trial, so that a continued search does not repeat random numbers.
        seed = (self.config.train.seed + len(self.all(*TrialState))) % 2**32
        self.study.sampler = optuna.samplers.TPESampler(
            n_startup_trials=STARTUP,
            multivariate=True,
            group=True,
            constant_liar=True,
            seed=seed,
        )
        trial = self.study.ask()
        chosen = suggest(trial, self.space, self.config)
        attributes = trial.user_attrs
        made = Attempt(trial, chosen | exact_settings({}, attributes.get(EXACT, {})))
        if "values" in attributes:  # of a trial that was interrupted
            made.values = attributes["values"][: len(self.configs) - 1]
            made.seconds = attributes["seconds"]
            made.cpu_seconds = attributes.get("cpu_seconds", 0.0)
            made.rungs = attributes.get("rungs", [])[: len(made.values)]
            self._report_first_rung(made)
            for step in range(1, len(made.values) + 1):
                trial.report(statistics.fmean(made.values[:step]), step)
        return made

    def job(self, attempt: Attempt) -> Job:
        """Returns the next run of a trial. What it is compared with is known when it starts, so
        that the result does not depend on other runs of the same time."""
        run = len(attempt.values)
        config = self.configs[run]
        epochs = rungs.after_epochs(config.train.epochs)
        least = {} if START in attempt.trial.user_attrs else self._least(attempt, epochs)
        return Job(self.graph, config, attempt.settings, tuple(epochs), least)

    def _least(self, attempt: Attempt, epochs: list[int]) -> dict[int, float]:
        """Returns the worst value at each rung with which the next run of a trial goes on.

        Trials are compared by their mean over the runs so far, the present one included.
        """
        run, before = len(attempt.values), sum(attempt.values)
        found = {}
        for epoch in epochs:
            others = []
            for trial in self._others(attempt):
                by_run = trial.user_attrs.get("rungs", [])
                if len(by_run) > run and str(epoch) in by_run[run]:
                    earlier = trial.user_attrs.get("values", [])[:run]
                    others.append((sum(earlier) + by_run[run][str(epoch)]) / (run + 1))
            least = rungs.least_to_go_on(others, self.larger_is_better)
            if least is not None:
                found[epoch] = least * (run + 1) - before
        return found

    def add_error(self, attempt: Attempt, error: InputError) -> None:
        """Ends a trial that failed. Raises the error again if all trials fail with it."""
        # The sampler avoids the settings of pruned trials, but ignores failed ones.
        attempt.trial.set_user_attr("error", str(error))
        self.study.tell(attempt.trial, state=TrialState.PRUNED)
        same = [t.user_attrs.get("error") == str(error) for t in self.all(*DONE)]
        if len(same) >= GIVE_UP and all(same):
            raise InputError(f"the first {len(same)} trials failed: {error}") from None

    def add_result(self, attempt: Attempt, outcome: Outcome) -> bool:
        """Adds the result of a run to its trial; returns whether the trial needs another run."""
        trial = attempt.trial
        attempt.seconds += outcome.seconds
        attempt.cpu_seconds += outcome.cpu_seconds
        attempt.rungs.append({str(epoch): value for epoch, value in outcome.rungs.items()})
        trial.set_user_attr("rungs", attempt.rungs)
        trial.set_user_attr("seconds", round(attempt.seconds, 2))
        trial.set_user_attr("cpu_seconds", round(attempt.cpu_seconds, 2))
        if len(attempt.rungs) == 1:
            self._report_first_rung(attempt)
        if outcome.value is None:
            trial.set_user_attr("stopped_at_epoch", outcome.epochs)
            self.study.tell(trial, state=TrialState.PRUNED)
            return False
        attempt.values.append(outcome.value)
        trial.set_user_attr("values", attempt.values)
        step, mean = len(attempt.values), statistics.fmean(attempt.values)
        trial.report(mean, step)
        if step == len(self.configs):
            self.study.tell(trial, mean)
        elif self._goes_on(attempt, mean):
            return True
        else:
            self.study.tell(trial, state=TrialState.PRUNED)
        return False

    def _report_first_rung(self, attempt: Attempt) -> None:
        """Reports the value at the first rung of the first run, which all trials have, as step 0:
        by it, the sampler orders those that were stopped in their first run."""
        for value in [*attempt.rungs[0].values()][:1] if attempt.rungs else []:
            attempt.trial.report(value, 0)

    def _goes_on(self, attempt: Attempt, mean: float) -> bool:
        """Returns whether a trial is among the better half of those that got as far as it did."""
        step = len(attempt.values)
        if START in attempt.trial.user_attrs or step not in rungs.after_runs(len(self.configs)):
            return True
        others = [
            trial.intermediate_values[step]
            for trial in self._others(attempt)
            if step in trial.intermediate_values
        ]
        least = rungs.least_to_go_on(others, self.larger_is_better)
        return least is None or (mean >= least if self.larger_is_better else mean <= least)

    def _others(self, attempt: Attempt) -> Iterable[FrozenTrial]:
        for trial in self.all(*DONE, TrialState.RUNNING):
            if trial.number != attempt.trial.number:
                yield trial

    def all(self, *states: TrialState) -> list[FrozenTrial]:
        """Returns the trials in some states, in order."""
        return self.study.get_trials(deepcopy=False, states=states)

    def trial(self, number: int) -> FrozenTrial:
        """Returns a trial by its number."""
        return self.all(*TrialState)[number]

    def defaults(self) -> FrozenTrial | None:
        """Returns the trial with the settings at the start, if it is complete."""
        complete = [t for t in self.all(TrialState.COMPLETE) if START in t.user_attrs]
        # Searches of earlier versions did not note the source.
        own = [t for t in complete if t.user_attrs[START] in (DEFAULTS, True)]
        return next(iter(own), None)

    def ranked(self) -> list[FrozenTrial]:
        """Returns the trials with a result, best first. A trial that got further comes before one
        that was stopped earlier; only those that got equally far are compared."""
        sign = 1 if self.larger_is_better else -1

        def place(trial: FrozenTrial) -> tuple[int, float]:
            step = max(trial.intermediate_values)
            return step, sign * trial.intermediate_values[step]

        found = [t for t in self.all(*DONE) if "error" not in t.user_attrs]
        return sorted((t for t in found if t.intermediate_values), key=place, reverse=True)

    def complete(self) -> list[FrozenTrial]:
        """Returns the complete trials, best first."""
        return [trial for trial in self.ranked() if trial.state == TrialState.COMPLETE]

    def write(self) -> None:
        """Writes ``trials.jsonl`` from the study."""
        lines = [json.dumps(record(t, self.metric)) + "\n" for t in self.all(*STATES)]
        write_text(self.out / TRIALS, "".join(lines))
