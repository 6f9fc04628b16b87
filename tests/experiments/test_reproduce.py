"""``dgt reproduce``: which runs it trains, in which order, and what it writes."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from dgt import InputError
from dgt.cli import main
from dgt.config import Config
from dgt.errors import MemoryNeeded
from dgt.estimator import NodeClassifier
from dgt.experiments import TABLES, Table, reproduce
from dgt.experiments.accuracy import accuracies
from dgt.experiments.code import digest
from dgt.experiments.machine import machine
from dgt.experiments.paper import MODELS, table1
from dgt.experiments.record import Record, read
from dgt.experiments.runner import train
from dgt.experiments.table import Line, Run, Setup
from dgt.report.sheet import Sheet
from tests.small import QUICK

DATASETS = [
    "actor", "squirrel", "chameleon", "cora", "citeseer", "chameleon-filtered", "squirrel-filtered",
]  # fmt: skip
LARGE = ["twitch-gamers", "ogbn-arxiv", "reddit"]
FEW_FEATURES = ["minesweeper", "tolokers"]


def table(name: str = "table1", datasets=("cora", "citeseer"), **settings) -> Table:
    def setups() -> list[Setup]:
        return [
            Setup(d, m, Config.of("dgt").replace(model=m, **settings))
            for d in datasets
            for m in MODELS
        ]

    return Table(name, setups, partial(accuracies, title="Title", published=table1))


@pytest.fixture
def done(monkeypatch) -> list[Run]:
    """Records the runs instead of training them."""
    runs: list[Run] = []

    def share(work, tasks: list[Run], workers: int | None) -> Iterator[tuple[Run, Record]]:
        for run in tasks:
            runs.append(run)
            yield run, stand_in(run)

    monkeypatch.setattr("dgt.experiments.runner.share", share)
    return runs


def stand_in(run: Run) -> Record:
    train = run.config.train
    assert train.split is not None
    test = {"accuracy": 0.5 + train.split / 100 + train.seed / 1000}
    return Record(
        run.table, run.dataset, run.config.model.model, train.split, train.seed,
        test, test, 1, 1.0, run.config.to_dict(), {},
        {run.table: run.measure(run, None)} if run.measure else {}, digest(run.config), machine(),
    )  # fmt: skip


def measure(run: Run, classifier: object) -> dict[str, int | None]:
    return {"split": run.config.train.split}


def names(runs: list[Run]) -> list[tuple[str, str, int | None, int]]:
    train = [run.config.train for run in runs]
    return [
        (run.dataset, run.config.model.model, t.split, t.seed)
        for run, t in zip(runs, train, strict=True)
    ]


def test_runs_go_over_splits_then_seeds_and_spread_over_the_table(done: list[Run], tmp_path: Path):
    reproduce(table(), runs=21, results=tmp_path)
    assert names(done) == [
        (dataset, model, r % 10, r // 10)
        for r in range(21)
        for dataset in ("cora", "citeseer")
        for model in MODELS
    ]
    assert {run.config.train.splits for run in done} == {"published"}


def test_no_run_is_repeated(done: list[Run], tmp_path: Path):
    reproduce(table(), runs=3, results=tmp_path)
    assert len(done) == 3 * 2 * len(MODELS)
    done.clear()
    reproduce(table(), runs=3, results=tmp_path)
    reproduce(table("defaults"), runs=3, results=tmp_path, datasets=["cora"])  # for another table
    assert done == []
    reproduce(table(), runs=4, results=tmp_path, models=["dgt"])
    assert names(done) == [("cora", "dgt", 3, 0), ("citeseer", "dgt", 3, 0)]
    done.clear()
    # runs with other settings are separate runs, and only they count in this table
    sheet = reproduce(table(lr=0.5), runs=2, results=tmp_path)
    assert len(done) == 2 * 2 * len(MODELS)
    assert {row["runs"] for row in sheet.numbers} == {2}


def test_lines_with_the_same_settings_share_their_runs(done: list[Run], tmp_path: Path):
    setups = [Setup("cora", name, Config.of("dgt")) for name in ("one", "other")]
    twins = Table("twins", lambda: setups, table().lay_out)
    sheet = reproduce(twins, runs=2, results=tmp_path)
    assert len(done) == 2
    assert [row["runs"] for row in sheet.numbers] == [2, 2]


def test_measurements_are_recorded(done: list[Run], tmp_path: Path):
    def lay_out(lines: list[Line]) -> Sheet:
        numbers = [{"measured": len([r for r in line.records if r.measures])} for line in lines]
        return Sheet("Title", ("a",), [("",)] * len(lines), (), numbers)

    plain = table(datasets=["cora"])
    all_measured = Table("all", plain.setups, lay_out, measure=measure)
    first_measured = Table("first", plain.setups, lay_out, measure=measure, measured=1)
    untrained = Table(
        "none",
        lambda: [Setup("far", "dgt", Config.of("dgt"), trained=False)],
        lay_out,
        measure=measure,
    )

    reproduce(plain, runs=3, results=tmp_path, models=["dgt"])
    done.clear()
    sheet = reproduce(first_measured, runs=3, results=tmp_path, models=["dgt"])
    assert names(done) == [("cora", "dgt", 0, 0)]  # recorded, but not measured
    assert sheet.numbers == [{"measured": 1}]
    done.clear()
    sheet = reproduce(all_measured, runs=3, results=tmp_path, models=["dgt"])
    assert names(done) == [("cora", "dgt", split, 0) for split in range(3)]
    assert sheet.numbers == [{"measured": 3}]
    done.clear()
    for each in (first_measured, all_measured, plain, untrained):
        for show in (False, True):
            reproduce(each, runs=3, results=tmp_path, models=["dgt"], show=show)
    assert done == []
    records = list(read(tmp_path / "runs.jsonl").values())
    assert [sorted(r.measures) for r in records] == [["all", "first"], ["all"], ["all"]]
    assert records[1].measures["all"] == {"split": 1}


def test_a_figure_is_drawn(done: list[Run], tmp_path: Path):
    def draw(lines: list[Line]) -> Figure | None:
        figure = Figure()
        figure.subplots().plot([line.records[0].test["accuracy"] for line in lines])
        return figure if len(lines) > 1 else None

    drawn = Table("drawn", table().setups, table().lay_out, draw=draw)
    reproduce(drawn, runs=1, results=tmp_path, datasets=["cora"], models=["dgt"])
    assert not (tmp_path / "drawn.png").exists()
    written = []
    for _ in range(2):
        reproduce(drawn, runs=1, results=tmp_path)
        written.append([(tmp_path / f"drawn.{kind}").read_bytes() for kind in ("png", "pdf")])
    assert written[0] == written[1]
    assert [content[:4] for content in written[0]] == [b"\x89PNG", b"%PDF"]


def test_a_table_may_lack_some_combinations():
    setups = [
        Setup("cora", "a", Config.of("dgt")),
        Setup("actor", "b", Config.of("dgt").replace(model="dgt-light")),
    ]
    sparse = Table("sparse", lambda: setups, table().lay_out)
    assert sparse.select(["actor"]) == setups[1:]
    with pytest.raises(InputError, match="no line with this combination"):
        sparse.select(["actor"], ["dgt"])


def test_what_is_written(done: list[Run], tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text("# Us\n<!-- table1 -->\nold\n<!-- /table1 -->\n")
    results = tmp_path / "results"
    sheet = reproduce(table(), runs=2, results=results, models=["dgt"], readme=readme)
    assert sorted(p.name for p in results.iterdir()) == ["runs.jsonl", "table1.json", "table1.md"]
    written = json.loads((results / "table1.json").read_text())
    assert written == {"table": "table1", "title": "Title", "rows": sheet.numbers}
    cora = written["rows"][0]
    assert (cora["dataset"], cora["model"], cora["runs"]) == ("cora", "dgt", 2)
    assert cora["mean"] == pytest.approx(50.5)  # of 50 and 51
    assert cora["difference"] == pytest.approx(50.5 - 87.55)
    text = (results / "table1.md").read_text()
    assert text.startswith("# Title\n\n| data set |")
    assert "| cora | dgt | 50.50±6.35 | 0.71 | 2 | 87.55±0.59 | -37.05 |" in text
    assert "| cora | dgt | 50.50±6.35 |" in readme.read_text()
    assert "old" not in readme.read_text()


def test_show_runs_nothing(done: list[Run], tmp_path: Path):
    with pytest.raises(InputError, match=r"runs\.jsonl: no run of table1 is recorded"):
        reproduce(table(), results=tmp_path, show=True)
    assert not any(tmp_path.iterdir())
    reproduce(table(), runs=2, results=tmp_path)
    done.clear()
    sheet = reproduce(table(), results=tmp_path, show=True)
    assert done == []
    asked = {row["model"]: (row["runs"], row["asked"]) for row in sheet.numbers}
    assert asked == {m: (2, 30) if m.startswith("dgt") else (2, 10) for m in MODELS}
    (tmp_path / "runs.jsonl").write_text("")
    reproduce(table(), runs=1, results=tmp_path, models=["gcn"])
    sheet = reproduce(table(), results=tmp_path, show=True)  # only lines with runs
    assert {row["model"] for row in sheet.numbers} == {"gcn"}


def test_a_model_that_does_not_fit_does_not_stop_the_others(tmp_path: Path, monkeypatch):
    def share(work, tasks: list[Run], workers: int | None) -> Iterator[tuple[Run, Record | None]]:
        for run in tasks:
            small = run.config.model.model != "graphormer"
            yield run, stand_in(run) if small else None

    monkeypatch.setattr("dgt.experiments.runner.share", share)
    sheet = reproduce(table(), runs=1, results=tmp_path, models=["gcn", "graphormer"])
    assert [row[:3] for row in sheet.rows] == [
        ("cora", "gcn", "50.00"),
        ("cora", "graphormer", "OOM"),
        ("citeseer", "gcn", "50.00"),
        ("citeseer", "graphormer", "OOM"),
    ]
    assert len(read(tmp_path / "runs.jsonl")) == 2


def test_a_run_that_needs_too_much_memory(monkeypatch):
    def fail(self, data, graph):
        raise MemoryNeeded("too large")

    monkeypatch.setattr(NodeClassifier, "fit", fail)
    monkeypatch.setattr("dgt.experiments.runner._load", lambda dataset: None)
    assert train(Setup("cora", "graphormer", Config.of("dgt")).plan("table1", 1)[0]) is None


def test_mistakes_are_found_before_the_first_run(done: list[Run], tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text("no comments")
    with pytest.raises(InputError, match="<!-- table1 -->"):
        reproduce(table(), results=tmp_path / "results", readme=readme)
    with pytest.raises(InputError, match=r"datasets: this table has no 'coora'.*'cora'"):
        reproduce(table(), results=tmp_path / "results", datasets=["coora"])
    with pytest.raises(InputError, match=r"models: this table has no 'dgt-lite'.*'dgt-light'"):
        reproduce(table(), results=tmp_path / "results", models=["dgt", "dgt-lite"])
    with pytest.raises(InputError, match="models: expected at least one name"):
        reproduce(table(), results=tmp_path / "results", models=[])
    with pytest.raises(InputError, match=r"runs\.jsonl: cannot read: Not a directory"):
        reproduce(table(), results=readme)
    assert done == []
    assert [p.name for p in tmp_path.iterdir()] == ["README.md"]


def test_an_interrupt_keeps_finished_runs(done: list[Run], tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setitem(TABLES, "table1", table())
    tokens = ["reproduce", "table1", "--runs", "2", "--results", str(tmp_path), "--models", "dgt"]
    with monkeypatch.context() as patch:

        def share(work, tasks, workers):
            yield tasks[0], stand_in(tasks[0])
            raise KeyboardInterrupt

        patch.setattr("dgt.experiments.runner.share", share)
        assert main(tokens) == 130
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "4 runs, 0 of them recorded" in shown.err
    assert "1/4  cora, dgt, split 0, seed 0: val 50.00%, test 50.00%; " in shown.err
    assert "run the same command again to continue" in shown.err
    assert len(read(tmp_path / "runs.jsonl")) == 1
    assert main(tokens) == 0
    assert len(done) == 3
    shown = capsys.readouterr()
    assert "4 runs, 1 of them recorded" in shown.err
    assert "50.50±6.35" in shown.out
    assert f"written: {tmp_path / 'table1.json'}, {tmp_path / 'table1.md'}" in shown.out
    assert main([*tokens, "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_on_a_terminal_the_table_grows(done: list[Run], tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    reproduce(table(), runs=2, results=tmp_path, models=["dgt"], progress=True)
    shown = capsys.readouterr().err
    assert "4/4" in shown
    assert "left" in shown
    assert "citeseer" in shown


def test_the_tables(capsys, tmp_path: Path, monkeypatch):
    assert {name: made.name for name, made in TABLES.items()} == {name: name for name in TABLES}
    for name in ("table1", "defaults"):
        setups = TABLES[name].setups()
        assert [(s.dataset, s.variant) for s in setups] == [
            (d, m)
            for d in (*DATASETS, *FEW_FEATURES, *(LARGE if name == "table1" else []))
            for m in (*MODELS, "dgt-plus")
            if m.startswith("dgt") or (name == "table1" and d not in FEW_FEATURES)
        ]
        assert all(s.config.model.model == s.variant for s in setups)
    preset = tmp_path / "citeseer-dgt-light.toml"
    preset.write_text("[model]\nmodel = 'dgt-light'\n[train]\nlr = 0.125\n")
    for module in ("config.preset", "experiments.table1"):
        monkeypatch.setattr(f"dgt.{module}.presets", lambda: {preset.stem: preset})
    for name, lr in (("table1", 0.125), ("defaults", Config.of("dgt").train.lr)):
        changed = Config.of("dgt").replace(model="dgt-light", lr=lr)
        found = {(s.dataset, s.variant): s.config for s in TABLES[name].setups()}
        assert found.pop(("citeseer", "dgt-light")) == changed
        assert found == {(d, m): Config.of(m) for d, m in found}
    assert main(["reproduce", "--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in TABLES)


def test_mistakes_on_the_command_line(capsys, tmp_path: Path):
    for tokens, part in [
        (["tabel1"], "unknown table 'tabel1'; did you mean 'table1'?"),
        (["table1", "--datasets", "coora"], "'coora'"),
        (["table1", "--models", "gnc"], "'gnc'"),
        (
            ["table1", "--runs", "0"],
            'Invalid value "0" for --runs. Expected at least 1',
        ),
        (
            ["table1", "--workers", "0"],
            'Invalid value "0" for --workers. Expected at least 1',
        ),
        ([], "TABLE"),
    ]:
        assert main(["reproduce", *tokens, "--results", str(tmp_path / "results")]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("error: ")
        assert part in shown.err
    assert not any(tmp_path.iterdir())


def test_a_run_that_fails_is_named(monkeypatch):
    def fail(self, data, graph):
        raise InputError("too hot")

    monkeypatch.setattr(NodeClassifier, "fit", fail)
    monkeypatch.setattr("dgt.experiments.runner._load", lambda dataset: None)
    run = Setup("cora", "dgt", Config.of("dgt")).plan("table1", 14)[13]
    with pytest.raises(InputError, match="cora, dgt, split 3, seed 1: too hot"):
        train(run)


@pytest.mark.parametrize(
    ("variant", "name"),
    [("dgt", "dgt"), ("AR", "dgt AR"), ("dgt/katz", "dgt/katz"), ("epsilon 3", "dgt epsilon 3")],
)
def test_the_description_of_a_run_names_its_line(variant: str, name: str):
    run = Setup("cora", variant, Config.of("dgt")).plan("table1", 13)[12]
    assert str(run) == f"cora, {name}, split 2, seed 1"


@pytest.mark.usefixtures("benchmark_data")
def test_real_runs_in_two_processes(tmp_path: Path, monkeypatch, capsys):
    settings = QUICK | {"epochs": 3}
    monkeypatch.setitem(TABLES, "table1", table(**settings))
    tokens = ["reproduce", "table1", "--datasets", "cora", "--models", "dgt-light"]
    tokens += ["--runs", "2", "--workers", "2", "--results", str(tmp_path)]
    assert main(tokens) == 0
    records = list(read(tmp_path / "runs.jsonl").values())
    assert sorted((r.dataset, r.model, r.split, r.seed) for r in records) == [
        ("cora", "dgt-light", 0, 0),
        ("cora", "dgt-light", 1, 0),
    ]
    # a run of a table gives the same result as NodeClassifier
    from dgt.data import load

    alone = NodeClassifier(model="dgt-light", splits="published", split=1, seed=0, **settings)
    metrics = alone.fit(load("cora", "published")).metrics_
    (record,) = (r for r in records if r.split == 1)
    assert record.test["accuracy"] == metrics["test_accuracy"]
    assert record.val["accuracy"] == metrics["val_accuracy"]
    assert record.best_epoch == metrics["best_epoch"]
    assert record.versions == metrics["versions"]
    assert record.code == digest(alone.config)
    assert record.machine == machine()
    assert record.seconds > 0
    assert "2/2" in capsys.readouterr().err
