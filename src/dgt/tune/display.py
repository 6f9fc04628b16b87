"""How a search shows itself on stderr."""

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import optuna
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


@contextmanager
def display(done: int, total: int, enabled: bool) -> Iterator[Callable[[int, str, str], None]]:
    """Yields a function that shows how many trials are done, the last one and the best: a live bar
    on a terminal, else a line each."""
    console = Console(stderr=True)
    if not enabled:
        yield lambda done, last, best: None
    elif not console.is_terminal:
        yield lambda done, last, best: print(
            f"trial {done}/{total}: {last}; {best}", file=sys.stderr
        )
    else:
        with Progress(
            TextColumn("searching"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
        ) as bar:
            task = bar.add_task("", total=total, completed=done)
            yield lambda done, last, best: bar.update(task, completed=done, description=best)


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps Optuna's notes off the terminal."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what it finds experimental, or too little to go by
            yield
    finally:
        optuna.logging.set_verbosity(before)
