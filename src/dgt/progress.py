"""A progress bar for what may take long."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress

MOMENT = 1.0  # seconds
LINE_SECONDS = 30.0


@contextmanager
def progress_bar(title: str, total: int, shown: bool) -> Iterator[Callable[[int], None]]:
    """Gives a function to call with the number of items done since its last call.

    The bar goes to stderr, says how much time is left, appears only when the work takes more than a
    moment, and leaves nothing behind. Where there is no terminal, as in a batch system, it is a
    line every half a minute.

    Args:
        title: what is being done.
        total: number of items.
        shown: False for no bar at all.
    """
    console = Console(stderr=True)
    if not shown:
        yield lambda done: None
        return
    begun = time.monotonic()
    if not console.is_terminal:
        so_far, said = 0, begun
        first: tuple[float, int] | None = None  # when the first items were done, and how many

        def line(done: int) -> None:
            nonlocal so_far, said, first
            so_far += done
            now = time.monotonic()
            if first is None:  # these may have waited for what all items need
                first = now, so_far
            elif now - said >= LINE_SECONDS:
                said = now
                left = (now - first[0]) / (so_far - first[1]) * max(total - so_far, 0)
                print(f"{title}: {so_far / total:.0%}, {left:.0f} s left", file=sys.stderr)

        yield line
        return
    with Progress(console=console, transient=True, disable=False) as bar:
        task = bar.add_task(title, total=total, visible=False)

        def advance(done: int) -> None:
            bar.update(task, advance=done, visible=time.monotonic() - begun > MOMENT)

        yield advance
