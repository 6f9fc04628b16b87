"""``dgt reproduce``: does the runs of a table that are not on record, then lays the table out."""

import functools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from torch_geometric.data import Data

from dgt.datasets import load
from dgt.errors import InputError
from dgt.estimator import NodeClassifier
from dgt.experiments.record import Key, Record, append, read, require_writable
from dgt.experiments.table import Line, Run, Setup, Table
from dgt.files import write_text
from dgt.report import Sheet, around, insert, markdown, rich_table
from dgt.workers import share

RECORD = "runs.jsonl"


def reproduce(
    table: Table,
    *,
    datasets: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
    runs: int = 30,
    workers: int | None = None,
    results: Path = Path("results"),
    show: bool = False,
    readme: Path | None = None,
    progress: bool = False,
) -> Sheet:
    """Makes a table, from the runs on record and those it then does.

    Every run goes on record in ``results/runs.jsonl`` as soon as it is done, so that nothing is
    ever run twice. The table is written as ``results/NAME.json`` and ``results/NAME.md``.

    Args:
        table: One of ``TABLES``.
        datasets: The data sets to take (default: all of the table).
        models: The models to take (default: all of the table).
        runs: Number of runs for each line.
        workers: Number of processes (default: one for each core).
        results: Folder for the record and the tables.
        show: Run nothing.
        readme: Markdown file in which the table goes between two comments with its name.
        progress: Show progress on stderr.
    """
    setups = table.select(datasets, models)
    if readme is not None:
        around(readme, table.name)  # refuses a file without the comments before the first run
    planned = {setup: [setup.run(table.name, r) for r in range(runs)] for setup in setups}
    path = results / RECORD
    records = read(path)

    def lay_out() -> Sheet:
        return table.lay_out([_line(setup, each, records) for setup, each in planned.items()])

    # The first run of every line, then the second: what is done early is spread over the table.
    ordered = [run for each in zip(*planned.values(), strict=True) for run in each]
    if show and not any(run.key in records for run in ordered):
        raise InputError(f"{path}: there is no run of {table.name} with these settings on record")
    missing = list({run.key: run for run in ordered if run.key not in records}.values())
    if missing and not show:
        require_writable(path)
        with (
            _display(len(missing), lay_out, progress) as display,
            closing(share(train, missing, workers)) as finished,
        ):
            for run, record in finished:
                append(path, record)
                records[run.key] = record
                display(run, record)
    sheet = lay_out()
    content = {"table": table.name, "title": sheet.title, "rows": sheet.numbers}
    write_text(results / f"{table.name}.json", json.dumps(content, indent=2) + "\n")
    write_text(results / f"{table.name}.md", f"# {sheet.title}\n\n{markdown(sheet)}")
    if readme is not None:
        insert(readme, table.name, markdown(sheet))
    return sheet


def train(run: Run) -> Record:
    """Does one run; called in a worker process."""
    try:
        classifier = NodeClassifier(run.config).fit(_load(run.dataset), graph=run.dataset)
    except InputError as error:
        raise InputError(f"{run}: {error}") from None
    metrics = classifier.metrics_
    return Record(
        table=run.table,
        dataset=run.dataset,
        model=metrics["model"],
        split=metrics["split"],
        seed=metrics["seed"],
        val_accuracy=metrics["val_accuracy"],
        test_accuracy=metrics["test_accuracy"],
        best_epoch=metrics["best_epoch"],
        seconds=metrics["seconds"],
        settings=run.config.to_dict(),
        versions=metrics["versions"],
    )


@functools.cache
def _load(dataset: str) -> Data:
    return load(dataset, "published")


def _line(setup: Setup, runs: list[Run], records: Mapping[Key, Record]) -> Line:
    return Line(setup, [records[run.key] for run in runs if run.key in records], len(runs))


@contextmanager
def _display(
    total: int, lay_out: Callable[[], Sheet], enabled: bool
) -> Iterator[Callable[[Run, Record], None]]:
    """Yields a function that shows a finished run: on a terminal a bar above the table as it
    stands, else a line."""
    console = Console(stderr=True)
    started, done = time.monotonic(), 0

    def left() -> str:
        return _duration((time.monotonic() - started) / done * (total - done))

    if not enabled:
        yield lambda run, record: None
    elif not console.is_terminal:

        def line(run: Run, record: Record) -> None:
            nonlocal done
            done += 1
            print(
                f"{done}/{total}  {run}: val {record.val_accuracy:.2%}, "
                f"test {record.test_accuracy:.2%}; {left()} left",
                file=sys.stderr,
                flush=True,
            )

        yield line
    else:
        bar = Progress(BarColumn(), MofNCompleteColumn(), TextColumn("runs  {task.description}"))
        task = bar.add_task("", total=total)
        with Live(Group(bar, rich_table(lay_out())), console=console, transient=True) as live:

            def update(run: Run, record: Record) -> None:
                nonlocal done
                done += 1
                bar.update(task, completed=done, description=f"{left()} left")
                live.update(Group(bar, rich_table(lay_out())))

            yield update


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
