"""The final comparison of a search: the best trials against the defaults.

The best of many trials on a few splits is partly the luckiest one. The finalists are therefore
trained again in further runs, each with another split or seed, to the end and without being
stopped. The one with the best mean over the same runs is chosen, and the defaults are kept if no
other is better.
"""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from optuna.trial import FrozenTrial

from dgt.config import Config
from dgt.data import short_name
from dgt.errors import InputError
from dgt.storage.files import write_text
from dgt.tune.records import PRESET, START, preset, settings_of
from dgt.tune.trials import Trials
from dgt.tune.wording import changes
from dgt.tune.worker import Job, Outcome

FINALISTS = 3  # besides the defaults and the preset
FINAL = "final"  # attribute of the study: results by trial and run
ERROR = "error"  # in place of a run
LEAST_RUNS = 2  # runs that all finalists have finished, before they decide


@dataclass
class Candidate:
    """A finalist and its values, in the same runs for all finalists."""

    trial: FrozenTrial
    values: list[float]

    @cached_property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @cached_property
    def std(self) -> float | None:
        return statistics.stdev(self.values) if len(self.values) > 1 else None


@dataclass
class Decision:
    """What a search has found."""

    chosen: Candidate
    candidates: list[Candidate]
    """All finalists, best first."""
    defaults: Candidate | None
    fresh: bool
    """Whether the values are from the final comparison. Otherwise, there was no time for it, and
    they are from the runs that the trials were chosen by."""


@dataclass
class Final:
    """The final comparison of a search.

    Args:
        trials: The trials of the search.
        configs: The settings of each run, without the searched ones.
    """

    trials: Trials
    configs: list[Config]

    def results(self) -> dict[int, dict[str, Any]]:
        """Returns, by trial and run, the value and the seconds in real and in CPU time."""
        kept = self.trials.study.user_attrs.get(FINAL, {})
        return {int(number): runs for number, runs in kept.items()}

    def by_run(self, trial: FrozenTrial) -> list[float | None]:
        """Returns the value of a complete trial in each run, those of the search first, and None
        for a run that it has not finished."""
        own = self.results().get(trial.number, {})
        further = (own.get(str(run), [None])[0] for run in range(len(self.configs)))
        return [*trial.user_attrs["values"], *further]

    def finalists(self) -> list[FrozenTrial]:
        """Returns the trials with the defaults and the preset, if they are complete, and the best
        others."""
        failed = {n for n, runs in self.results().items() if ERROR in runs}
        own, complete = self.trials.defaults(), self.trials.complete()
        first = [] if own is None else [own]
        others = [t for t in complete if t.number not in failed and t not in first]
        first += [t for t in others if t.user_attrs.get(START) == PRESET]
        return first + [t for t in others if t not in first][:FINALISTS]

    def missing(self) -> Iterator[tuple[FrozenTrial, int]]:
        """Yields what is still to train, split by split, so that finalists can be compared as soon
        as possible."""
        results, finalists = self.results(), self.finalists()
        if len(finalists) < 2:
            return
        for run in range(len(self.configs)):
            for trial in finalists:
                done = results.get(trial.number, {})
                if str(run) not in done and ERROR not in done:
                    yield trial, run

    def seconds_left(self, cpu: bool) -> float:
        """Estimates the time that the rest takes, by the earlier runs of the same trials."""
        name = "cpu_seconds" if cpu else "seconds"
        return sum(
            trial.user_attrs.get(name, 0.0) / len(self.trials.configs)
            for trial, _ in self.missing()
        )

    def seconds(self, cpu: bool) -> float:
        """Returns the time of all runs so far."""
        place = 2 if cpu else 1
        return sum(
            result[place]
            for runs in self.results().values()
            for run, result in runs.items()
            if run != ERROR
        )

    def job(self, trial: FrozenTrial, run: int) -> Job:
        return Job(self.trials.graph, self.configs[run], settings_of(trial))

    def add_result(self, number: int, run: int, outcome: Outcome) -> None:
        times = round(outcome.seconds, 2), round(outcome.cpu_seconds, 2)
        self._add(number, str(run), [outcome.value, *times])

    def add_error(self, number: int, error: InputError) -> None:
        """Excludes a finalist that failed."""
        self._add(number, ERROR, str(error))

    def _add(self, number: int, key: str, value: Any) -> None:
        kept = {str(each): dict(runs) for each, runs in self.results().items()}
        kept.setdefault(str(number), {})[key] = value
        self.trials.study.set_user_attr(FINAL, kept)

    def decide(self) -> Decision:
        """Chooses among the finalists by their mean over the runs that all of them have finished.
        If time was short, the last finalists are left out. Without enough runs of at least two
        finalists, the runs of the search decide."""
        finalists = self.finalists()
        if not finalists:
            raise InputError(f"{self.trials.out}: no trial is complete")
        fresh = self._compared(finalists)
        candidates = fresh or [Candidate(t, t.user_attrs["values"]) for t in finalists]
        own = self.trials.defaults()
        defaults = candidates[0] if own is not None else None
        # The sort is stable, so that the defaults win a tie.
        candidates.sort(key=lambda each: each.mean, reverse=self.trials.larger_is_better)
        return Decision(candidates[0], candidates, defaults, bool(fresh))

    def _compared(self, finalists: list[FrozenTrial]) -> list[Candidate]:
        """Returns as many finalists, the first ones, as have finished enough runs together."""
        results = self.results()
        for count in range(len(finalists), 1, -1):
            each = [results.get(trial.number, {}) for trial in finalists[:count]]
            runs = [str(r) for r in range(len(self.configs))]
            common = [r for r in runs if all(r in own for own in each)]
            if common and len(common) >= min(LEAST_RUNS, len(self.configs)):
                values = [[own[r][0] for r in common] for own in each]
                return [Candidate(*both) for both in zip(finalists, values, strict=False)]
        return []

    def write_preset(self, decision: Decision) -> str:
        """Writes the chosen settings as TOML, and returns the path."""
        trials, config = self.trials, self.trials.config
        path = trials.out / f"{short_name(trials.graph)}-{config.model.model}.toml"
        settings = config.replace(**settings_of(decision.chosen.trial))
        write_text(path, f"# {self.note(decision)}\n" + preset(settings))
        return str(path)

    def note(self, decision: Decision) -> str:
        """Returns how the settings were found, in one sentence."""
        trials, chosen, own = self.trials, decision.chosen, decision.defaults
        count = len(chosen.values)
        runs = "one run" if count == 1 else f"the mean of {count} runs"
        text = f"Validation {trials.metric} {trials.text(chosen.mean)}, {runs}"
        tried = f"{trials.done} trials of dgt tune"
        if own is chosen:
            return f"{text}: the defaults, which none of {tried} improved on."
        before = "" if own is None else f" (defaults: {trials.text(own.mean)})"
        return f"{text}{before}: the best of {tried}."


def is_better(decision: Decision) -> bool:
    """Returns whether something better than the defaults was found."""
    return decision.defaults is not None and decision.chosen is not decision.defaults


def changed(final: Final, candidate: Candidate) -> dict[str, Any]:
    """Returns the settings of a finalist that differ from the defaults."""
    return changes(settings_of(candidate.trial), final.trials.config)


def source(candidate: Candidate) -> str:
    """Returns where the settings of a finalist come from."""
    given = candidate.trial.user_attrs.get(START)
    return "defaults" if given is True else str(given or "search")
