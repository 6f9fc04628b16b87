"""Records of other code are shown as such and made anew, and recorded runs can be verified."""

import dataclasses
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dgt import InputError
from dgt.cli import main
from dgt.config import Config
from dgt.experiments import TABLES, Table, reproduce, verify
from dgt.experiments.accuracy import accuracies
from dgt.experiments.code import digest
from dgt.experiments.grid import with_grid
from dgt.experiments.machine import machine
from dgt.experiments.paper import table1
from dgt.experiments.record import Record, read
from dgt.experiments.table import Line, Run, Setup
from dgt.report.sheet import Sheet, markdown

VERSIONS = {"dgt": "0.2.0", "torch": "2", "numpy": "2"}
RUNS = 3


def setups() -> list[Setup]:
    return [Setup(d, m, Config.of(m)) for d in ("cora", "actor") for m in ("gcn", "dgt")]


def lay_out(lines: list[Line]) -> Sheet:
    return with_grid(accuracies(lines, title="Title", published=table1))


TABLE = Table("table1", setups, lay_out)


def trained(run: Run, **changes: Any) -> Record:
    train = run.config.train
    assert train.split is not None
    metrics = {"accuracy": 0.5 + train.split / 100, "macro-f1": 0.25}
    made = Record(
        table=run.table,
        dataset=run.dataset,
        model=run.config.model.model,
        split=train.split,
        seed=train.seed,
        val=metrics,
        test=metrics,
        best_epoch=7,
        seconds=2.0,
        settings=run.config.to_dict(),
        versions=VERSIONS,
        code=digest(run.config),
        machine=machine(),
    )
    return dataclasses.replace(made, **changes)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Makes up the results of runs instead of training them, and lists the runs."""
    runs: list[Run] = []

    def share(work, tasks: list[Run], workers: int | None) -> Iterator[tuple[Run, Record | None]]:
        for run in tasks:
            runs.append(run)
            yield run, trained(run)

    monkeypatch.setattr("dgt.experiments.runner.share", share)
    monkeypatch.setattr("dgt.experiments.verification.share", share)
    return runs


def planned() -> list[Run]:
    return [run for setup in setups() for run in TABLE.plan(setup, RUNS)]


def write(folder: Path, change: Callable[[Run], dict[str, Any]] = lambda run: {}) -> Path:
    """Writes the records of all runs, with some changes."""
    records = [trained(run, **change(run)) for run in planned()]
    path = folder / "runs.jsonl"
    path.write_text("".join(json.dumps(dataclasses.asdict(each)) + "\n" for each in records))
    return path


def of(model: str, **changes: Any) -> Callable[[Run], dict[str, Any]]:
    return lambda run: changes if run.config.model.model == model else {}


show = partial(reproduce, TABLE, runs=RUNS)


def test_stale_records_are_marked_and_made_anew(done: list[Run], tmp_path: Path):
    path = write(tmp_path, of("gcn", code="0123", test={"accuracy": 0.75}))
    before = path.read_bytes()
    sheet = show(results=tmp_path, show=True)
    assert [row[2] for row in sheet.rows] == ["75.00±0.00!", "51.00±2.48"] * 2
    assert [row["stale"] for row in sheet.numbers] == [3, 0, 3, 0]
    note = "! Stale: 6 runs come from other code than today's."
    assert note in sheet.notes
    assert sheet.grid is not None
    assert note in sheet.grid.notes
    assert sheet.grid.rows[0][1].startswith("75.00±0.00!") or "**!" in sheet.grid.rows[0][1]
    assert done == []
    assert path.read_bytes() == before

    sheet = show(results=tmp_path)
    assert {run.config.model.model for run in done} == {"gcn"}
    assert len(done) == 6
    assert [row[2] for row in sheet.rows] == ["51.00±2.48"] * 4
    assert not any("Stale" in note for note in sheet.notes)
    assert path.read_bytes().startswith(before)  # nothing is thrown away
    done.clear()
    show(results=tmp_path)
    assert done == []


def test_records_without_a_digest_are_kept_and_marked(done: list[Run], tmp_path: Path):
    write(tmp_path, of("dgt", code=None, machine={}))
    sheet = show(results=tmp_path)
    assert done == []
    assert [row[2] for row in sheet.rows] == ["51.00±2.48", "51.00±2.48?"] * 2
    assert "? Unknown code: 6 runs come from before records named their code." in sheet.notes
    write(tmp_path, lambda run: {"code": None})
    sheet = show(results=tmp_path)
    assert [row[2] for row in sheet.rows] == ["51.00±2.48"] * 4
    note = "All runs were recorded before records named the code that they come from."
    assert markdown(sheet).count(note) == 2
    assert done == []


def test_the_runs_to_verify_are_chosen_at_random(done: list[Run], tmp_path: Path):
    path = write(tmp_path)
    before = path.read_bytes(), sorted(tmp_path.iterdir())
    chosen = []
    for seed in (0, 0, 1):
        sheet = verify(TABLE, 4, runs=RUNS, results=tmp_path, seed=seed)
        assert len(sheet.rows) == len({run.key for run in done}) == 4
        assert all(row["same"] for row in sheet.numbers)
        assert "4 of 4 runs are the same to the last digit." in sheet.notes
        chosen.append([run.key for run in done])
        done.clear()
    assert chosen[0] == chosen[1] != chosen[2]
    verify(TABLE, 99, runs=RUNS, results=tmp_path, models=["gcn"], datasets=["cora"])
    assert sorted(run.config.train.split or 0 for run in done) == [0, 1, 2]
    assert (path.read_bytes(), sorted(tmp_path.iterdir())) == before
    with pytest.raises(InputError, match=r"runs\.jsonl: no run of table1 is recorded"):
        verify(TABLE, 2, results=tmp_path / "none")


OTHER = {"test": {"accuracy": 0.125}}


@pytest.mark.parametrize(
    ("changes", "same", "causes"),
    [
        ({}, True, []),
        ({"val": {"accuracy": 0.5}, "test": {"accuracy": 0.5}}, True, []),  # fewer metrics
        ({"code": "0123", "machine": {}}, True, []),  # the same result after all
        (OTHER, False, []),
        ({"best_epoch": 8}, False, []),
        (OTHER | {"code": "0123"}, False, ["other code"]),
        (OTHER | {"code": None}, False, ["unknown code"]),
        (OTHER | {"versions": VERSIONS | {"numpy": "1"}}, False, ["numpy 1, now 2"]),
        (OTHER | {"versions": VERSIONS | {"dgt": "0.1.0"}}, False, []),
        (
            OTHER | {"machine": machine() | {"processor": "Z80"}},
            False,
            [f"processor Z80, now {machine()['processor']}"],
        ),
        (OTHER | {"machine": {}}, False, ["unknown processor"]),
        (
            OTHER | {"code": None, "machine": {}},
            False,
            ["unknown code", "unknown processor"],
        ),
    ],
)
def test_the_cause_of_a_difference(
    done, tmp_path: Path, monkeypatch, capsys, changes, same, causes
):
    monkeypatch.setitem(TABLES, "table1", TABLE)
    first = planned()[0]
    write(tmp_path, lambda run: changes if run.key == first.key else {})
    arguments: dict[str, Any] = {"runs": 1, "datasets": ["cora"], "models": ["gcn"]}
    sheet = verify(TABLE, 5, results=tmp_path, **arguments)
    (row,) = sheet.numbers
    assert row["same"] == same
    assert row["causes"] == causes
    unexplained = not same and not causes
    assert row["unexplained"] == unexplained
    tokens = ["--runs=1", "--datasets=cora", "--models=gcn", f"--results={tmp_path}"]
    assert main(["reproduce", "table1", "--verify", "5", *tokens]) == int(unexplained)
    shown = " ".join(capsys.readouterr().out.split())
    assert ("differ although the code and the machine are the same" in shown) == unexplained


def test_a_run_that_no_longer_fits_into_memory(tmp_path: Path, monkeypatch):
    def share(work, tasks: list[Run], workers: int | None) -> Iterator[tuple[Run, None]]:
        return ((run, None) for run in tasks)

    monkeypatch.setattr("dgt.experiments.verification.share", share)
    write(tmp_path)
    sheet = verify(TABLE, 1, runs=RUNS, results=tmp_path)
    assert sheet.rows[0][-2] == "OOM"
    assert not sheet.numbers[0]["unexplained"]


def test_verify_writes_nothing(capsys, tmp_path: Path):
    for flag in (["--show"], ["--readme", "README.md"]):
        assert main(["reproduce", "table1", "--verify", "1", *flag]) == 2
        assert "--verify: cannot be combined with" in capsys.readouterr().err
    assert main(["reproduce", "table1", "--verify", "0"]) == 2


@pytest.mark.usefixtures("benchmark_data")
def test_a_recorded_run_is_the_same_when_trained_again(tmp_path: Path, monkeypatch):
    for module in ("runner", "verification"):  # in this process
        monkeypatch.setattr(
            f"dgt.experiments.{module}.share",
            lambda work, tasks, workers: ((task, work(task)) for task in tasks),
        )
    config = Config.of("gcn").replace(epochs=3, hidden_channels=8)
    real = Table("table1", lambda: [Setup("cora", "gcn", config)], lay_out)
    reproduce(real, runs=1, workers=1, results=tmp_path)
    (record,) = read(tmp_path / "runs.jsonl").values()
    assert record.state(Config.from_dict(record.settings)) == "current"
    sheet = verify(real, 1, runs=1, workers=1, results=tmp_path)
    assert sheet.rows[0][-2:] == ("same", "–")
