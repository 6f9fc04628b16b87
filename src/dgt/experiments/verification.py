"""``dgt reproduce --verify``: trains recorded runs again and reports what differs, and why."""

import random
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from dgt.data.benchmarks import LARGE, is_here
from dgt.errors import InputError
from dgt.experiments.accuracy import NOTHING, OUT_OF_MEMORY
from dgt.experiments.display import display
from dgt.experiments.machine import differences, machine
from dgt.experiments.record import Key, Record, read
from dgt.experiments.runner import RECORD, train
from dgt.experiments.table import Run, Table
from dgt.report.sheet import Sheet
from dgt.system.workers import share

COLUMNS = ("data set", "line", "split", "seed", "val", "test", "epoch", "result", "cause")
NOTE = (
    "Val and test: recorded accuracy in percent and, if it differs, that of the new run. Epoch: "
    "the best one."
)


def verify(
    table: Table,
    count: int,
    *,
    datasets: Iterable[str] | None = None,
    models: Iterable[str] | None = None,
    runs: int | None = None,
    workers: int | None = None,
    results: Path = Path("results"),
    seed: int = 0,
    progress: bool = False,
) -> Sheet:
    """Trains some recorded runs of a table again and compares the results. Writes no file.

    Args:
        table: One of ``TABLES``.
        count: Number of runs to train, chosen at random.
        datasets: Data sets to choose from (default: all whose files are on this machine).
        models: Models to choose from (default: all models of the table).
        runs: Number of runs per line to choose from (default: that of its setup).
        workers: Number of processes (default: one per core).
        results: Folder with the record.
        seed: Seed of the choice.
        progress: Show progress on stderr.

    Returns:
        A row per run. In ``numbers``, ``same`` is whether all metrics and the best epoch are the
        same to the last digit, None if the run does not fit into memory; ``causes`` lists what may
        explain a difference; ``unexplained`` is whether the code and the machine are the same, but
        not the result.
    """
    path = results / RECORD
    records = read(path)
    chosen = choose(table, count, records, datasets, models, runs, seed)
    if not chosen:
        raise InputError(f"{path}: no run of {table.name} is recorded with these settings")
    numbers: dict[Key, dict[str, Any]] = {}

    def lay_out() -> Sheet:
        made = [numbers[run.key] for run in chosen if run.key in numbers]
        title = f"{len(made)} recorded runs of {table.name}, trained again"
        return Sheet(title, COLUMNS, list(map(_text, made)), _notes(made), made)

    if progress:
        cost = sum(records[run.key].seconds for run in chosen)
        print(f"{len(chosen)} runs; they took {cost:.0f} s when recorded", file=sys.stderr)
    with (
        display(len(chosen), lay_out, progress) as show_run,
        closing(share(train, chosen, workers)) as finished,
    ):
        for run, record in finished:
            numbers[run.key] = compare(run, records[run.key], record)
            show_run(run, record)
    return lay_out()


def choose(
    table: Table,
    count: int,
    records: dict[Key, Record],
    datasets: Iterable[str] | None,
    models: Iterable[str] | None,
    runs: int | None,
    seed: int,
) -> list[Run]:
    """Returns recorded runs of a table, chosen at random, without their measurements."""
    planned = [
        run._replace(measure=None)
        for setup in table.select(datasets, models)
        if datasets is not None or setup.dataset not in LARGE or is_here(setup.dataset)
        for run in table.plan(setup, runs)
    ]
    recorded = list({run.key: run for run in planned if run.key in records}.values())
    return random.Random(seed).sample(recorded, min(count, len(recorded)))


def compare(run: Run, before: Record, now: Record | None) -> dict[str, Any]:
    """Returns the recorded and the new result of a run, and what may explain a difference."""
    row: dict[str, Any] = {
        "dataset": run.dataset,
        "model": run.config.model.model,
        "line": run.variant,
        "split": before.split,
        "seed": before.seed,
        "before": _results(before, before),
        "now": None,
        "same": None,
        "causes": [],
        "unexplained": False,
    }
    if now is None:
        return row
    # Records of earlier versions have fewer metrics.
    row["before"], row["now"] = _results(before, now), _results(now, before)
    row["same"] = row["before"] == row["now"]
    if not row["same"]:
        row["causes"] = causes(run, before, now)
        row["unexplained"] = not row["causes"]
    return row


def causes(run: Run, before: Record, now: Record) -> list[str]:
    """Returns what may explain different results: other code or another machine, as far as they
    are known. Empty if both are the same."""
    state = before.state(run.config)
    code = {"current": [], "stale": ["other code"], "unknown": ["unknown code"]}[state]
    known = machine().keys() <= before.machine.keys()
    return [*code, *differences(before, now), *([] if known else ["unknown processor"])]


def _results(record: Record, other: Record) -> dict[str, Any]:
    return {
        "val": {name: value for name, value in record.val.items() if name in other.val},
        "test": {name: value for name, value in record.test.items() if name in other.test},
        "best_epoch": record.best_epoch,
    }


def _notes(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    same = sum(row["same"] is True for row in rows)
    differ = [row for row in rows if row["same"] is False]
    notes = [NOTE, f"{same} of {len(rows)} runs are the same to the last digit."]
    unexplained = sum(row["unexplained"] for row in differ)
    if unexplained:
        notes.append(f"{unexplained} differ although the code and the machine are the same.")
    return tuple(notes)


def _text(row: dict[str, Any]) -> tuple[str, ...]:
    before, now = row["before"], row["now"] or row["before"]

    def both(old: str, new: str) -> str:
        return old if old == new else f"{old} → {new}"

    def percent(part: str) -> str:
        return both(*(f"{100 * each[part]['accuracy']:.2f}" for each in (before, now)))

    return (
        row["dataset"],
        row["line"],
        str(row["split"]),
        str(row["seed"]),
        percent("val"),
        percent("test"),
        both(str(before["best_epoch"]), str(now["best_epoch"])),
        {True: "same", False: "different", None: OUT_OF_MEMORY}[row["same"]],
        "same code, same machine" if row["unexplained"] else "; ".join(row["causes"]) or NOTHING,
    )
