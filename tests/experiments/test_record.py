"""The record of finished runs survives interrupted and concurrent writes."""

import dataclasses
import json
import logging
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest

from dgt import InputError
from dgt.config import Config
from dgt.experiments.code import digest
from dgt.experiments.equal_code import Equal
from dgt.experiments.record import Record, append, read, require_writable


def record(seed: int = 0, dataset: str = "cora", **settings) -> Record:
    config = Config.of("dgt").replace(seed=seed, split=3, splits="published", **settings)
    return Record(
        table="table1",
        dataset=dataset,
        model=config.model.model,
        split=3,
        seed=seed,
        val={"accuracy": 0.5},
        test={"accuracy": 0.25},
        best_epoch=7,
        seconds=1.5,
        settings=config.to_dict(),
        versions={"dgt": "0.1.0"},
    )


def test_records_are_read_as_written(tmp_path: Path):
    path = tmp_path / "results" / "runs.jsonl"
    assert read(path) == {}
    first, second = record(0, criteria=["ppr", "bfs"], anchors=5), record(1, katz_beta=1)
    append(path, first)
    append(path, second)
    found = read(path)
    config = Config.of("dgt").replace(
        splits="published", split=3, criteria=("ppr", "bfs"), anchors=5
    )
    assert list(found) == [("cora", config), ("cora", Config.from_dict(second.settings))]
    # tuples become lists in JSON
    assert json.dumps(dataclasses.asdict(found["cora", config])) == json.dumps(
        dataclasses.asdict(first)
    )
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert set(lines[0]) == {
        "table", "dataset", "model", "split", "seed", "val", "test", "best_epoch",
        "seconds", "settings", "versions", "measures", "code", "machine",
    }  # fmt: skip


def test_the_first_record_of_a_run_counts(tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    append(path, record())
    append(path, dataclasses.replace(record(), table="defaults", test={"accuracy": 0.75}))
    append(path, record(dataset="citeseer"))
    assert [(r.dataset, r.test) for r in read(path).values()] == [
        ("cora", {"accuracy": 0.25}),
        ("citeseer", {"accuracy": 0.25}),
    ]


@pytest.mark.parametrize("cut", [1, 2, 30, 400, -2])
def test_a_truncated_last_line_is_skipped(tmp_path: Path, caplog, cut: int):
    path = tmp_path / "runs.jsonl"
    append(path, record(0))
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:cut])
    with caplog.at_level(logging.WARNING):
        assert len(read(path)) == 1
    assert f"{path}: line 2 was cut short and is skipped" in caplog.text
    append(path, record(1))
    assert path.read_bytes().startswith(whole)
    caplog.clear()
    assert [r.seed for r in read(path).values()] == [0, 1]
    assert caplog.text == ""


def test_a_last_line_without_a_newline_is_kept(tmp_path: Path, caplog):
    path = tmp_path / "runs.jsonl"
    append(path, record(0))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert [r.seed for r in read(path).values()] == [0]
    append(path, record(1))
    assert [r.seed for r in read(path).values()] == [0, 1]
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ('{"table": "table1", "da', "not JSON"),
        ("\xff\x00", "not JSON"),
        ("", "not JSON"),
        ("[1, 2]", "expected a JSON object"),
        ("[" * 100_000, "nested too deeply"),
        ('{"table": NaN}', "not JSON: NaN is not a number"),
        ('{"table": "table1"}', "has no 'dataset'"),
    ],
)
def test_a_damaged_line_in_the_middle_is_an_error(tmp_path: Path, line: str, part: str):
    path = tmp_path / "runs.jsonl"
    append(path, record(0))
    with open(path, "ab") as file:
        file.write(line.encode("latin-1") + b"\n")
    append(path, record(1))
    with pytest.raises(InputError, match=part) as error:
        read(path)
    assert f"{path}: line 2: " in str(error.value)


def test_a_value_of_the_wrong_type_is_an_error(tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    append(path, dataclasses.replace(record(), seconds="long"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="line 1: seconds: expected float, got 'long'"):
        read(path)
    path.unlink()
    append(path, dataclasses.replace(record(), test={"accuracy": "high"}))  # type: ignore[dict-item]
    with pytest.raises(InputError, match="line 1: test: accuracy: expected float, got 'high'"):
        read(path)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"seed": True}, "seed: expected int, got True"),
        ({"val": {}}, "val: has no 'accuracy'"),
        ({"test": {"accuracy": 10**400}}, "test: accuracy: expected float, got 10000"),
        ({"measures": {"attention": 3}}, "measures: attention: expected"),
    ],
)
def test_values_that_no_run_has(tmp_path: Path, values: dict[str, Any], message: str):
    path = tmp_path / "runs.jsonl"
    append(path, dataclasses.replace(record(), **values))
    with pytest.raises(InputError, match=f"line 1: {message}"):
        read(path)


def test_a_line_in_the_format_before_0_2_is_refused(tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    values = dataclasses.asdict(record())
    del values["val"], values["test"]
    path.write_text(json.dumps({**values, "val_accuracy": 0.5, "test_accuracy": 0.25}) + "\n")
    with pytest.raises(InputError, match=r"line 1: written by a version before 0\.2: .* 'val'"):
        read(path)


def test_lines_of_other_versions(tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    older, other = record(0), record(1)
    del older.settings["model"]["mlp_ratio"]  # as if written before this setting existed
    del older.settings["train"]["class_weight"], older.settings["train"]["device"]
    other.settings["model"]["wings"] = 2
    append(path, older)
    append(path, other)
    assert list(read(path)) == [("cora", Config.from_dict(record(0).settings))]


def _write_many(path: Path, seeds: range) -> None:
    for seed in seeds:
        append(path, record(seed))


def test_two_writers(tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    context = multiprocessing.get_context("spawn")
    seeds = [range(30), range(30, 60)]
    processes = [context.Process(target=_write_many, args=(path, each)) for each in seeds]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        read(path)  # never sees a partial line
        time.sleep(0.001)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    lines = path.read_text().splitlines()
    assert sorted(json.loads(line)["seed"] for line in lines) == list(range(60))


def test_an_unwritable_path_is_an_error(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        require_writable(tmp_path / "file" / "runs.jsonl")
    with pytest.raises(InputError, match="cannot write"):
        require_writable(tmp_path)
    with pytest.raises(InputError, match="cannot read"):
        read(tmp_path)


def test_repeating_a_run_adds_its_measurements(tmp_path: Path):
    path = tmp_path / "runs.jsonl"
    first = record(0)
    older = {n: v for n, v in dataclasses.asdict(first).items() if n != "measures"}
    path.write_text(json.dumps(older) + "\n")
    assert list(read(path).values()) == [first]
    for measures in ({"one": {"a": 1}}, {"one": {"a": 2}, "two": {"b": 3}}):
        append(path, dataclasses.replace(first, test={"accuracy": 0.0}, measures=measures))
    (found,) = read(path).values()
    assert found == dataclasses.replace(first, measures={"one": {"a": 1}, "two": {"b": 3}})


def test_code_that_gives_the_same_results_counts_as_todays(tmp_path: Path, monkeypatch):
    path = tmp_path / "runs.jsonl"
    config = Config.from_dict(record().settings)
    for number, code in enumerate(("equal", "other")):
        append(path, dataclasses.replace(record(), code=code, best_epoch=number))
    (found,) = read(path).values()
    assert (found.code, found.state(config)) == ("other", "stale")
    today = str(digest(config))
    codes, place = frozenset({"equal", today}), "dgt.experiments.equal_code.EQUAL"
    elsewhere = Equal(codes, frozenset({"elsewhere"}))
    monkeypatch.setattr(place, (Equal(frozenset({"a", "b"})), elsewhere))
    (found,) = read(path).values()
    assert (found.code, found.state(config)) == ("other", "stale")
    monkeypatch.setattr(place, (elsewhere, Equal(codes)))
    (found,) = read(path).values()
    assert (found.code, found.state(config)) == ("equal", "current")
    append(path, dataclasses.replace(record(), code=today, best_epoch=2))
    (found,) = read(path).values()
    assert (found.code, found.state(config)) == (today, "current")


def test_lines_of_several_codes(tmp_path: Path):
    """Today's code counts or, without it, the code that was used last. Each line keeps its own."""
    path = tmp_path / "runs.jsonl"
    now = digest(Config.from_dict(record().settings))
    tried = []

    def add(code: str | None, accuracy: float, **measures: Any) -> Record:
        made = dataclasses.replace(
            record(), code=code, test={"accuracy": accuracy}, measures=measures
        )
        append(path, made)
        tried.append(made)
        (found,) = read(path).values()
        return found

    def state(found: Record) -> str:
        return found.state(Config.from_dict(found.settings))

    assert state(add(None, 0.1, one={"a": 1})) == "unknown"
    assert state(add("older", 0.2)) == "stale"
    assert add("newer", 0.3, two={"b": 2}) == tried[2]
    assert add("older", 0.4) == tried[1]  # used last; its first line counts
    assert state(add(now, 0.5)) == "current"
    assert add("newer", 0.6) == tried[4]
    # measurements of other code are left out
    assert add(now, 0.7, three={"c": 3}) == dataclasses.replace(
        tried[4], measures={"three": {"c": 3}}
    )
