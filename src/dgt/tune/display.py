"""Output of a search on stderr."""

import logging
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import optuna

from dgt.system.progress import duration, live_bar


@contextmanager
def display(
    done: int, total: int, until: float | None, enabled: bool
) -> Iterator[Callable[[int, str, str, str], None]]:
    """Yields a function that shows the number of finished trials, and the name, the last trial and
    the best trial of a search.

    Args:
        done: Number of trials that are finished already.
        total: Number of trials in total.
        until: When the search ends, by ``time.monotonic()``. The bar then shows minutes.
        enabled: Whether to show anything at all.
    """
    if until is None:
        with live_bar("trials", total, shown=enabled, done=done) as show:
            yield lambda done, name, last, best: show(
                done, f"{name}{best}", f"{done} of {total} trials: {name}{last}; {best}"
            )
        return
    started = time.monotonic()
    minutes = max(1, round((until - started) / 60))
    with live_bar("minutes", minutes, shown=enabled) as show:

        def show_trial(done: int, name: str, last: str, best: str) -> None:
            now = time.monotonic()
            left = f"{duration(max(0.0, until - now))} left"
            passed = min(minutes, int((now - started) / 60))
            count = "1 trial" if done == 1 else f"{done} trials"
            line = f"{count}, {left}: {name}{last}; {best}"
            show(passed, f"{count}, {name}{best}", line)

        yield show_trial


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
