"""One of the searches that run at the same time: its budget, and what it trains next."""

import time
from concurrent.futures import Future
from dataclasses import dataclass, field

from optuna.trial import TrialState

from dgt.errors import InputError
from dgt.tune.final import Final
from dgt.tune.trials import Attempt, Trials
from dgt.tune.worker import Job, Outcome

# The final comparison takes at most this share of a budget; the trials before it are worth more.
MOST_FOR_FINAL = 1 / 3


@dataclass(eq=False)
class Run:
    """A run that is being trained: the next one of a trial, or one of the final comparison."""

    share: "Share"
    job: Job
    number: int
    """The number of the trial."""
    run: int
    attempt: Attempt | None
    """The trial. None in the final comparison."""
    started: float

    slot: int = 0
    """Its place on the board."""

    def name(self) -> str:
        """Returns which run it is, with the split and the seed that its value depends on."""
        final = self.share.final.configs
        count = len(self.share.trials.configs if self.attempt is not None else final)
        train = self.job.config.train
        if self.share.one_split:
            place = f"seed {train.seed}"
        elif train.split_index == train.seed:
            place = f"split and seed {train.seed}"
        else:
            place = f"split {train.split_index}, seed {train.seed}"
        return f"run {self.run + 1} of {count} ({place})"


@dataclass(eq=False)
class Share:
    """A search and the time that it has used."""

    trials: Trials
    final: Final
    total: int
    """Number of trials."""
    one_split: bool = False
    """Whether the graph has one split of its own, so that runs only differ in their seeds."""
    budget: float | None = None
    """Seconds of all workers that the search may use."""
    cpu: bool = False
    """Whether the budget is CPU time, which includes that of earlier searches in the folder."""
    seconds: float = 0.0
    longest: float = 0.0
    """Seconds of the longest run of a trial that was given up."""
    running: list[Run] = field(default_factory=list)
    going_on: list[Attempt] = field(default_factory=list)
    """Trials whose next run can start."""
    error: InputError | None = None
    over: bool = False
    """Whether the rest of the budget is for the final comparison."""

    def used(self) -> float:
        """Returns the seconds of workers that were used so far, with those of running runs."""
        now = time.monotonic()
        return self._spent() + sum(now - run.started for run in self.running)

    def _spent(self) -> float:
        if not self.cpu:
            return self.seconds
        # An interrupted trial hands its results to the one that repeats it.
        trials = self.trials.all(*(state for state in TrialState if state != TrialState.FAIL))
        return self.final.seconds(cpu=True) + sum(
            trial.user_attrs.get("cpu_seconds", 0.0) for trial in trials
        )

    def is_searching(self) -> bool:
        """Returns whether there is time for more trials, and not only for the final comparison."""
        if self.budget is not None and not self.over:
            reserved = min(self.final.seconds_left(self.cpu), MOST_FOR_FINAL * self.budget)
            self.over = self.used() + reserved >= self.budget
        return not self.over

    def next_run(self) -> Run | None:
        """Returns the next run to train, if there is one."""
        if self.error is not None or (self.budget is not None and self.used() >= self.budget):
            return None
        if self.is_searching():
            if self.going_on:
                return self._next_of(self.going_on.pop(0))
            trying = sum(run.attempt is not None for run in self.running)
            if self.trials.done + trying < self.total:
                return self._next_of(self.trials.ask())
        else:
            self.close()
        return self._next_of_final()

    def _next_of(self, attempt: Attempt) -> Run:
        job = self.trials.job(attempt)
        return self._start(job, attempt.trial.number, len(attempt.values), attempt)

    def _next_of_final(self) -> Run | None:
        own = self.trials.defaults()
        # Which others are the best is not known before all trials have ended.
        undecided = self.going_on or any(run.attempt is not None for run in self.running)
        begun = {(run.number, run.run) for run in self.running if run.attempt is None}
        for trial, run in self.final.missing():
            if (trial.number, run) in begun:
                continue
            if undecided and (own is None or trial.number != own.number):
                continue
            return self._start(self.final.job(trial, run), trial.number, run, None)
        return None

    def _start(self, job: Job, number: int, run: int, attempt: Attempt | None) -> Run:
        made = Run(self, job, number, run, attempt, time.monotonic())
        self.running.append(made)
        return made

    def finish(self, run: Run, future: Future[Outcome]) -> bool:
        """Adds the result of a run; returns whether this ends a trial."""
        self.running.remove(run)
        self.seconds += time.monotonic() - run.started
        attempt = run.attempt
        try:
            outcome = future.result()
        except InputError as error:
            self._fail(run, error)
            return attempt is not None
        if attempt is None:
            self.final.add_result(run.number, run.run, outcome)
            return False
        if self.trials.add_result(attempt, outcome):
            self.going_on.append(attempt)
            return False
        self.trials.write()
        if self.trials.complete():
            self.final.write_preset(self.final.decide())
        return True

    def _fail(self, run: Run, error: InputError) -> None:
        if run.attempt is None:
            self.final.add_error(run.number, error)
            return
        try:
            self.trials.add_error(run.attempt, error)
        except InputError as same:
            self.error = same
        self.trials.write()

    def put_back(self, run: Run) -> None:
        """Gives up a run. Its trial is repeated when the search is continued."""
        self.running.remove(run)
        if run.attempt is not None:
            self.longest = max(self.longest, time.monotonic() - run.started)
            self.trials.put_back(run.attempt)

    def close(self) -> None:
        """Gives up the trials whose next run has not started."""
        while self.going_on:
            self.trials.put_back(self.going_on.pop())
