"""Output of a search on stderr."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import optuna

from dgt.system.progress import live_bar


@contextmanager
def display(done: int, total: int, enabled: bool) -> Iterator[Callable[[int, str, str], None]]:
    """Yields a function that shows the number of finished trials, the last one and the best one.

    Args:
        done: Number of trials that are finished already.
        total: Number of trials in total.
        enabled: Whether to show anything at all.
    """
    with live_bar("trials", total, shown=enabled, done=done) as show:
        yield lambda done, last, best: show(done, best, f"{done} of {total} trials: {last}; {best}")


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
