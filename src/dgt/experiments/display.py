"""Output of ``dgt reproduce`` while its runs are trained."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dgt.data.benchmarks import BENCHMARKS
from dgt.evaluate import METRICS
from dgt.experiments.record import Record
from dgt.experiments.table import Run
from dgt.report.sheet import Sheet, rich_table
from dgt.system.progress import duration, live_bar


@contextmanager
def display(
    total: int, lay_out: Callable[[], Sheet], enabled: bool
) -> Iterator[Callable[[Run, Record | None], None]]:
    """Yields a function that shows a finished run. The record is None if it did not fit in memory.

    On a terminal, the table is shown below the bar and grows with every run.

    Args:
        total: Number of runs to train.
        lay_out: Returns the current table.
        enabled: Whether to show anything at all.
    """
    started, done = time.monotonic(), 0
    with live_bar(
        "runs", total, shown=enabled, transient=True, below=lambda: rich_table(lay_out())
    ) as show:

        def show_run(run: Run, record: Record | None) -> None:
            nonlocal done
            done += 1
            left = f"{duration((time.monotonic() - started) / done * (total - done))} left"
            show(done, left, f"{done}/{total}  {run}: {_result(run, record)}; {left}")

        yield show_run


def _result(run: Run, record: Record | None) -> str:
    if record is None:
        return "needs more memory than is available"
    name = run.config.train.metric or BENCHMARKS[run.dataset].metric
    text = METRICS[name].text
    return f"val {text(record.val[name])}, test {text(record.test[name])}"
