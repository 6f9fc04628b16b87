"""A progress bar for what may take long."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress

MOMENT = 1.0  # seconds


@contextmanager
def progress_bar(title: str, total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with the number of items done since its last call.

    The bar goes to stderr, appears only when the work takes more than a moment, and leaves nothing
    behind.

    Args:
        title: what is being done.
        total: number of items.
        shown: False for no bar at all.
    """
    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield lambda done: None
        return
    begun = time.monotonic()
    with Progress(console=console, transient=True, disable=False) as bar:
        task = bar.add_task(title, total=total, visible=False)

        def advance(done: int) -> None:
            bar.update(task, advance=done, visible=time.monotonic() - begun > MOMENT)

        yield advance
