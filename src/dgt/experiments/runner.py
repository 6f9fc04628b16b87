"""``dgt reproduce``: trains the runs of a table that are not recorded yet and writes the table."""

import functools
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

from torch_geometric.data import Data

from dgt.data import load
from dgt.data.benchmarks import LARGE, is_here
from dgt.errors import InputError, MemoryNeeded
from dgt.estimator import NodeClassifier
from dgt.experiments.code import digest
from dgt.experiments.display import display
from dgt.experiments.machine import machine
from dgt.experiments.record import (
    Key,
    Record,
    append,
    joined,
    read,
    require_writable,
)
from dgt.experiments.table import Line, Run, Setup, Table
from dgt.report import plots
from dgt.report.sheet import Sheet, around, insert, markdown
from dgt.storage.files import write_text
from dgt.system.workers import share
from dgt.training.results import without_class_warnings

RECORD = "runs.jsonl"


def reproduce(
    table: Table,
    *,
    datasets: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
    runs: int | None = None,
    workers: int | None = None,
    results: Path = Path("results"),
    show: bool = False,
    readme: Path | None = None,
    progress: bool = False,
) -> Sheet:
    """Reproduces a table of the paper.

    Every run is recorded in ``results/runs.jsonl`` as soon as it is finished. Recorded runs are
    repeated only if they come from other code than today's (:mod:`dgt.experiments.code`). The table
    is written to ``results/NAME.json`` and ``results/NAME.md``, its figure, if it has one, to
    ``results/NAME.png`` and ``results/NAME.pdf``.

    Args:
        table: One of ``TABLES``.
        datasets: Data sets to include (default: all data sets of the table, except large ones
            whose files are missing). Large data sets are downloaded if they are named here.
        models: Models to include (default: all models of the table).
        runs: Number of runs per line (default: that of its setup).
        workers: Number of processes (default: one per core).
        results: Folder for the record and the tables.
        show: Only show recorded runs, train nothing.
        readme: Markdown file into which the table is inserted, between two comments with its name.
        progress: Show progress on stderr.

    Returns:
        The formatted table.
    """
    setups = table.select(datasets, models)
    if readme is not None:
        around(readme, table.name)  # fails before the first run if the comments are missing
    planned = {setup: table.plan(setup, runs) for setup in setups}
    absent: list[str] = []
    if datasets is None:
        in_table = {setup.dataset for setup in setups if setup.trained}
        absent = [name for name in LARGE if name in in_table and not is_here(name)]
    path = results / RECORD
    records = read(path)
    refused: set[Key] = set()

    def lines() -> list[Line]:
        made = (_line(setup, each, records, refused) for setup, each in planned.items())
        return [line for line in made if line.records or not left_out(line.setup)]

    def left_out(setup: Setup) -> bool:
        """Returns whether a line is left out if it has no recorded runs."""
        return setup.trained and (show or setup.dataset in absent)

    def lay_out() -> Sheet:
        return table.lay_out(lines())

    def on_record(run: Run) -> bool:
        known = records.get(run.key)
        if known is None or known.state(run.config) == "stale":
            return False
        return run.measure is None or run.table in known.measures

    # First runs of all lines, then second runs: early results are spread over the whole table.
    each_turn = zip_longest(*(each for s, each in planned.items() if s.dataset not in absent))
    ordered = [run for turn in each_turn for run in turn if run is not None]
    if show and ordered and not any(run.key in records for run in ordered):
        raise InputError(f"{path}: no run of {table.name} is recorded with these settings")
    missing = list({run.key: run for run in ordered if not on_record(run)}.values())
    if missing and not show:
        require_writable(path)
        if progress:
            done = sum(map(on_record, ordered))
            known = [(records[run.key], run) for run in missing if run.key in records]
            stale = sum(record.state(run.config) == "stale" for record, run in known)
            again = f", {stale} of other code, which are trained again" if stale else ""
            print(f"{len(ordered)} runs, {done} of them recorded{again}", file=sys.stderr)
            if absent:
                names = ", ".join(absent)
                print(
                    f"skipping {names}: not on this machine; use --datasets to download",
                    file=sys.stderr,
                )
        with (
            display(len(missing), lay_out, progress) as show_run,
            closing(share(train, missing, workers)) as finished,
        ):
            for run, record in finished:
                if record is None:
                    refused.add(run.key)
                else:
                    append(path, record)
                    records[run.key] = joined(records.get(run.key), record)
                show_run(run, record)
    sheet = lay_out()
    content = {"table": table.name, "title": sheet.title, "rows": sheet.numbers}
    write_text(results / f"{table.name}.json", json.dumps(content, indent=2) + "\n")
    write_text(results / f"{table.name}.md", f"# {sheet.title}\n\n{markdown(sheet)}")
    figure = table.draw(lines()) if table.draw else None
    if figure is not None:
        for suffix in plots.SUFFIXES:
            plots.save(figure, results / f"{table.name}{suffix}")
    if readme is not None:
        insert(readme, table.name, markdown(sheet))
    return sheet


def train(run: Run) -> Record | None:
    """Trains one run. Called in a worker process.

    Returns:
        The record of the run, or None if it does not fit into memory.
    """
    try:
        with without_class_warnings():
            classifier = NodeClassifier(run.config).fit(_load(run.dataset), graph=run.dataset)
    except MemoryNeeded:
        return None
    except InputError as error:
        raise InputError(f"{run}: {error}") from None
    metrics = classifier.metrics_
    return Record(
        table=run.table,
        dataset=run.dataset,
        model=metrics["model"],
        split=run.config.train.split or 0,
        seed=metrics["seed"],
        val=metrics["val"],
        test=metrics["test"],
        best_epoch=metrics["best_epoch"],
        seconds=metrics["seconds"],
        settings=run.config.to_dict(),
        versions=metrics["versions"],
        measures={run.table: run.measure(run, classifier)} if run.measure else {},
        code=digest(run.config),
        machine=machine(),
    )


@functools.cache
def _load(dataset: str) -> Data:
    return load(dataset, "published")


def _line(setup: Setup, runs: list[Run], records: Mapping[Key, Record], refused: set[Key]) -> Line:
    done = [run for run in runs if run.key in records]
    found = [records[run.key] for run in done]
    states = tuple(record.state(run.config) for run, record in zip(done, found, strict=True))
    return Line(setup, found, len(runs), any(run.key in refused for run in runs), states)
