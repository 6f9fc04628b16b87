"""Progress on stderr: a live bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

BAR_AFTER = 1.0  # seconds
LINE_SECONDS = 30.0
LEVELS, ASCII_LEVELS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
CURVE_WIDTH = 48


class Show(Protocol):
    """Shows the state of some work."""

    def __call__(self, done: int, status: str = "", line: str | None = None) -> None:
        """Shows that some of the items are done.

        Args:
            done: Number of items done so far.
            status: Text beside the bar, on a terminal.
            line: Line to print where there is no terminal, if any.
        """


class Curve:
    """A line of text that shows how a value has developed, to be shown below a bar.

    Args:
        title: What the value is.
        text: Formats a value.
        values: The values so far. The list may grow while it is shown.
    """

    def __init__(self, title: str, text: Callable[[float], str], values: list[float]) -> None:
        self.title = title
        self.text = text
        self.values = values

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.values:
            low, high = self.text(min(self.values)), self.text(max(self.values))
            levels = ASCII_LEVELS if options.ascii_only else LEVELS
            line = f"{self.title} {sparkline(self.values, CURVE_WIDTH, levels)} {low} to {high}"
            yield Text(line, no_wrap=True, overflow="ellipsis")


def sparkline(values: Sequence[float], width: int, levels: str = LEVELS) -> str:
    """Returns at most ``width`` of the values, evenly spaced, as bars of one character each."""
    count = min(width, len(values))
    # The last value is always shown.
    chosen = [values[(i + 1) * len(values) // count - 1] for i in range(count)]
    low, high = min(values), max(values)
    scale = (len(levels) - 1) / (high - low) if high > low else 0.0
    return "".join(levels[round((value - low) * scale)] for value in chosen)


@contextmanager
def live_bar(
    title: str,
    total: int,
    *,
    shown: bool,
    done: int = 0,
    delay: float = 0.0,
    transient: bool = False,
    below: Callable[[], RenderableType] | None = None,
) -> Iterator[Show]:
    """Yields a function that shows progress.

    Args:
        title: Text before the bar.
        total: Number of items.
        shown: Whether to show anything at all.
        done: Number of items done already.
        delay: Seconds of work after which the bar appears.
        transient: Remove the bar when the work is done.
        below: Returns what is shown below the bar.
    """
    console = Console(stderr=True)
    if not shown:
        yield lambda done, status="", line=None: None
        return
    if not console.is_terminal:

        def print_line(done: int, status: str = "", line: str | None = None) -> None:
            if line is not None:
                print(line, file=sys.stderr, flush=True)

        yield print_line
        return

    bar = Progress(
        TextColumn(title, markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
    )
    task = bar.add_task("", total=total, completed=done, visible=delay == 0)
    started = time.monotonic()

    def view() -> RenderableType:
        return bar if below is None else Group(bar, below())

    with Live(view(), console=console, transient=transient) as live:

        def update(done: int, status: str = "", line: str | None = None) -> None:
            visible = time.monotonic() - started >= delay
            bar.update(task, completed=done, description=status, visible=visible)
            if below is not None:
                live.update(view())

        yield update


_showing = ContextVar("showing", default=False)


@contextmanager
def showing(shown: bool) -> Iterator[None]:
    """Whether progress bars are shown within some code, unless they are told otherwise."""
    token = _showing.set(shown)
    try:
        yield
    finally:
        _showing.reset(token)


@contextmanager
def progress_bar(
    title: str, total: int, shown: bool | None = None
) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with the number of items done since its last call.

    The bar shows the time left, appears only if the work takes more than a second, and is removed
    at the end. Without a terminal, a line is printed every 30 seconds.

    Args:
        title: What is being done.
        total: Number of items.
        shown: Whether to show anything at all (default: as set by :func:`showing`).
    """
    shown = _showing.get() if shown is None else shown
    so_far, printed = 0, time.monotonic()
    first: tuple[float, int] | None = None  # time and number of items of the first call
    with live_bar(title, total, shown=shown, delay=BAR_AFTER, transient=True) as show:

        def advance(done: int) -> None:
            nonlocal so_far, printed, first
            so_far += done
            now = time.monotonic()
            if first is None:
                # The first items may include one-time work, so the pace is measured from here.
                first = now, so_far
            if so_far == first[1]:
                show(so_far)
                return
            pace = (now - first[0]) / (so_far - first[1])
            left = f"{duration(pace * max(total - so_far, 0))} left"
            line = None
            if now - printed >= LINE_SECONDS:
                printed, line = now, f"{title}: {so_far / total:.0%}, {left}"
            show(so_far, left, line)

        yield advance


def duration(seconds: float) -> str:
    """Formats a number of seconds, such as ``80 s``, ``12 min`` or ``2 h 5 min``."""
    minutes = round(seconds / 60)
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
