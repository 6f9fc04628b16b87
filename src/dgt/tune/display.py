"""Output of a search on stderr."""

import logging
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Self

import optuna
from rich.console import Group, RenderableType
from rich.text import Text

from dgt.data import short_name
from dgt.system.progress import LINE_SECONDS, duration, live_bar
from dgt.tune.share import Run, Share
from dgt.tune.wording import last, leader
from dgt.tune.worker import Board

PACE_AFTER = 10.0  # seconds after which the time left is estimated


class Display:
    """Shows what a search does, from its start: a live view on a terminal, plain lines elsewhere.

    Args:
        searches: The searches.
        board: Has the epoch of each run.
        until: When the search ends, by ``time.monotonic()``. The bar then shows minutes.
        enabled: Whether to show anything at all.
    """

    def __init__(
        self, searches: Sequence[Share], board: Board, until: float | None, enabled: bool
    ) -> None:
        self.searches = searches
        self.board = board
        self.until = until
        self.enabled = enabled
        self.stack = ExitStack()
        self.started = self.printed = time.monotonic()
        self.before = self._done()
        self.running: list[Run] = []

    def __enter__(self) -> Self:
        timed, total = self._timed, sum(each.total for each in self.searches)
        if timed:
            total = max(1, round(self._seconds() / 60))
        self.show = self.stack.enter_context(
            live_bar(
                "minutes" if timed else "trials",
                total,
                shown=self.enabled,
                done=0 if timed else self.before,
                below=self._below,
            )
        )
        graph = short_name(self.searches[0].trials.graph)
        models = ", ".join(each.trials.config.model.model for each in self.searches)
        limit = duration(self._seconds()) if timed else f"{total} trials"
        earlier = f", {self.before} of them finished earlier" if self.before and not timed else ""
        runs = len(self.searches[0].trials.configs)
        each = "one run each" if runs == 1 else f"up to {runs} runs each"
        self._print(f"searching settings of {models} on {graph}: {limit}{earlier}, {each}")
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def tick(self, running: Iterable[Run]) -> None:
        """Shows the runs that are being trained. Without a terminal, every 30 seconds."""
        self.running = list(running)
        line = None
        if time.monotonic() - self.printed >= LINE_SECONDS:
            line = f"{self._summary()}; training {'; '.join(map(self._run, self.running))}"
        self._print(line)

    def finished(self, run: Run, ended: bool) -> None:
        """Shows the result of a run if it ended a trial, or if it is of the final comparison."""
        trials, several = run.share.trials, len(self.searches) > 1
        name = f"{trials.config.model.model}: " if several else ""
        if ended:
            self._print(f"{self._summary()}: {name}{last(trials, run.number)}; {leader(trials)}")
        elif run.attempt is None:
            results = run.share.final.results().get(run.number, {})
            value = results.get(str(run.run), [None])[0]
            text = "failed" if value is None else f"val {trials.text(value)}"
            part = f"{name}final comparison, trial {run.number}, {run.name()}"
            self._print(f"{self._summary()}: {part}: {text}")

    def _print(self, line: str | None) -> None:
        if line is not None:
            self.printed = time.monotonic()
        passed = int(self._passed() / 60) if self._timed else self._done()
        self.show(passed, self._summary(), line)

    @property
    def _timed(self) -> bool:
        return self.until is not None or any(each.cpu for each in self.searches)

    def _seconds(self) -> float:
        """Returns the time that the search may take, from its start; for CPU time, the sum of all
        models."""
        if self.until is not None:
            return self.until - self.started
        return sum(each.budget or 0.0 for each in self.searches)

    def _passed(self) -> float:
        if self.until is not None:
            return time.monotonic() - self.started
        return sum(each.used() for each in self.searches)

    def _done(self) -> int:
        return sum(each.trials.done for each in self.searches)

    def _summary(self) -> str:
        """Returns the number of trials and the time left."""
        done = self._done()
        count = "1 trial" if done == 1 else f"{done} trials"
        if self._timed:
            kind = "" if self.until is not None else " of CPU time"
            return f"{count}, {duration(max(0.0, self._seconds() - self._passed()))}{kind} left"
        total, now = sum(each.total for each in self.searches), time.monotonic()
        text = f"{done} of {total} trials"
        if done == self.before or now - self.started < PACE_AFTER or done == total:
            return text
        pace = (now - self.started) / (done - self.before)
        return f"{text}, about {duration(pace * (total - done))} left"

    def _run(self, run: Run) -> str:
        """Returns a run that is being trained as text."""
        trials = run.share.trials
        epoch, best = self.board.read(run.slot)
        state = f"epoch {epoch}, best val {trials.text(best)}" if epoch else "preparing"
        part = "final comparison, " if run.attempt is None else ""
        return (
            f"{trials.config.model.model}, {part}trial {run.number}, {run.name()}: {state} "
            f"({duration(time.monotonic() - run.started)})"
        )

    def _below(self) -> RenderableType:
        lines = [self._run(run) for run in self.running]
        lines += [
            f"{share.trials.config.model.model}: {leader(share.trials)}" for share in self.searches
        ]
        return Group(*(Text(line, no_wrap=True, overflow="ellipsis") for line in lines))


@contextmanager
def quiet() -> Iterator[None]:
    """Silences the log messages and warnings of Optuna."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # experimental features, too few trials
            yield
    finally:
        optuna.logging.set_verbosity(before)
