"""``dgt reproduce``: does the runs of a table that are not on record, then lays the table out."""

import functools
import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import closing
from itertools import zip_longest
from pathlib import Path

from torch_geometric.data import Data

from dgt import plots
from dgt.datasets import load
from dgt.datasets.published import LARGE, is_here
from dgt.errors import InputError, MemoryNeeded
from dgt.estimator import NodeClassifier
from dgt.experiments.display import display
from dgt.experiments.record import (
    Key,
    Record,
    append,
    read,
    require_writable,
    with_measures,
)
from dgt.experiments.table import Line, Run, Setup, Table
from dgt.files import write_text
from dgt.report import Sheet, around, insert, markdown
from dgt.workers import share

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
    """Makes a table, from the runs on record and those it then does.

    Every run goes on record in ``results/runs.jsonl`` as soon as it is done, so that nothing is
    ever run twice. The table is written as ``results/NAME.json`` and ``results/NAME.md``, its
    figure, if it has one, as ``results/NAME.png`` and ``results/NAME.pdf``.

    Args:
        table: One of ``TABLES``.
        datasets: The data sets to take (default: all of the table, of the large ones those whose
            files are here; a large one that is named is downloaded).
        models: The models to take (default: all of the table).
        runs: Number of runs for each line (default: that of its setup).
        workers: Number of processes (default: one for each core).
        results: Folder for the record and the tables.
        show: Run nothing.
        readme: Markdown file in which the table goes between two comments with its name.
        progress: Show progress on stderr.
    """
    setups = table.select(datasets, models)
    if readme is not None:
        around(readme, table.name)  # refuses a file without the comments before the first run
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
        """Whether a line is none unless it has runs on record."""
        return setup.trained and (show or setup.dataset in absent)

    def lay_out() -> Sheet:
        return table.lay_out(lines())

    def on_record(run: Run) -> bool:
        known = records.get(run.key)
        return known is not None and (run.measure is None or run.table in known.measures)

    # The first run of every line, then the second: what is done early is spread over the table.
    each_turn = zip_longest(*(each for s, each in planned.items() if s.dataset not in absent))
    ordered = [run for turn in each_turn for run in turn if run is not None]
    if show and ordered and not any(run.key in records for run in ordered):
        raise InputError(f"{path}: there is no run of {table.name} with these settings on record")
    missing = list({run.key: run for run in ordered if not on_record(run)}.values())
    if missing and not show:
        require_writable(path)
        if progress:
            done = sum(map(on_record, ordered))
            print(f"{len(ordered)} runs, {done} of them on record", file=sys.stderr)
            if absent:
                names = ", ".join(absent)
                print(
                    f"without {names}: not on this machine; named in --datasets, it is downloaded",
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
                    records[run.key] = with_measures(records.get(run.key, record), record.measures)
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
    """Does one run, or none if it needs more memory than there is; called in a worker process."""
    try:
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
        val_accuracy=metrics["val_accuracy"],
        test_accuracy=metrics["test_accuracy"],
        best_epoch=metrics["best_epoch"],
        seconds=metrics["seconds"],
        settings=run.config.to_dict(),
        versions=metrics["versions"],
        measures={run.table: run.measure(run, classifier)} if run.measure else {},
    )


@functools.cache
def _load(dataset: str) -> Data:
    return load(dataset, "published")


def _line(setup: Setup, runs: list[Run], records: Mapping[Key, Record], refused: set[Key]) -> Line:
    done = [records[run.key] for run in runs if run.key in records]
    return Line(setup, done, len(runs), any(run.key in refused for run in runs))
