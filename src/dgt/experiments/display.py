"""What is seen of a table while its runs are done."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from dgt.experiments.record import Record
from dgt.experiments.table import Run
from dgt.report import Sheet, rich_table


@contextmanager
def display(
    total: int, lay_out: Callable[[], Sheet], enabled: bool
) -> Iterator[Callable[[Run, Record | None], None]]:
    """Yields a function that shows a finished run on stderr, or one that memory was too small for:
    on a terminal by a bar above the table as it stands, else by a line.

    Args:
        total: Number of runs to do.
        lay_out: Gives the table as it stands.
        enabled: False to show nothing.
    """
    console = Console(stderr=True)
    started, done = time.monotonic(), 0

    def left() -> str:
        return f"{_duration((time.monotonic() - started) / done * (total - done))} left"

    if not enabled:
        yield lambda run, record: None
    elif not console.is_terminal:

        def line(run: Run, record: Record | None) -> None:
            nonlocal done
            done += 1
            result = "needs more memory than there is"
            if record is not None:
                result = f"val {record.val_accuracy:.2%}, test {record.test_accuracy:.2%}"
            print(f"{done}/{total}  {run}: {result}; {left()}", file=sys.stderr, flush=True)

        yield line
    else:
        bar = Progress(BarColumn(), MofNCompleteColumn(), TextColumn("runs  {task.description}"))
        task = bar.add_task("", total=total)
        with Live(Group(bar, rich_table(lay_out())), console=console, transient=True) as live:

            def update(run: Run, record: Record | None) -> None:
                nonlocal done
                done += 1
                bar.update(task, completed=done, description=left())
                live.update(Group(bar, rich_table(lay_out())))

            yield update


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
