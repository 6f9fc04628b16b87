"""The search for settings: what it tries, how it compares trials, and how it continues."""

import itertools
import json
import re
import threading
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from dgt import NodeClassifier, tune
from dgt.cli import main
from dgt.config import MODELS, Config, read_preset, read_toml
from dgt.data import load
from dgt.errors import InputError
from dgt.nn.record import Sizes
from dgt.tune.known import KNOWN
from dgt.tune.space import OWN_SPACE, SPACE, encode, full_space, paper_grid, points
from dgt.tune.worker import Job, Outcome
from tests.small import QUICK, block_graph, write_folder


def search(*arguments: Any, **keywords: Any) -> dict[str, Any]:
    """A search without the final comparison, which has tests of its own."""
    return tune.search(*arguments, **{"final_runs": 0} | keywords)


def search_models(*arguments: Any, **keywords: Any) -> list[dict[str, Any]]:
    return tune.search_models(*arguments, **{"final_runs": 0} | keywords)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_folder(tmp_path_factory.mktemp("graphs") / "colors", block_graph()))


@pytest.fixture
def trained(monkeypatch) -> list[dict[str, Any]]:
    """Replaces training by a function that is best at lr 0.02; lists the settings tried."""
    seen: list[dict[str, Any]] = []

    def train_once(graph: str, config: Config, settings: dict[str, Any]) -> tuple[float, float]:
        seen.append(settings | {"split": config.train.split_index})
        return accuracy(settings), 0.1

    replace_training(monkeypatch, train_once)
    return seen


def accuracy(settings: dict[str, Any]) -> float:
    return 0.9 - abs(settings.get("lr", 0.01) - 0.02)


def replace_training(monkeypatch, train_once: Callable[..., tuple[float, float]]) -> None:
    """Replaces training in processes by a function of the graph, the settings that are not searched
    and those that are, which returns a value and seconds."""

    @contextmanager
    def threads(count: int, begin: Callable[[], None]) -> Iterator[ThreadPoolExecutor]:
        with ThreadPoolExecutor(count) as pool:
            yield pool

    def train(job: Job) -> Outcome:
        value, seconds = train_once(job.graph, job.config, job.settings)
        return Outcome(value, seconds, seconds, dict.fromkeys(job.rungs, value))

    monkeypatch.setattr("dgt.tune.schedule.train_once", train)
    monkeypatch.setattr("dgt.tune.schedule.processes", threads)


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("model", ["dgt", "dgt-light"])
def test_the_first_trial_has_the_given_settings(graph, tmp_path, trained, model):
    config = Config.of("dgt").replace(model=model, lr=0.03)
    search(graph, config, tmp_path, trials=3, runs=2, workers=1)
    assert config.replace(**records(tmp_path)[0]["settings"]).replace(criteria=None) == config
    assert [settings["split"] for settings in trained] == [0, 1] * 3


def test_settings_to_start_from_are_tried_first(graph, tmp_path, trained, capsys):
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('[model]\nmodel = "dgt"\ndropout = 0.3\n[train]\nlr = 0.02\n')
    second.write_text("[train]\nlr = 0.04\nseed = 5\n")
    out = tmp_path / "out"
    tokens = ["tune", graph, "--out", str(out), "--trials", "3", "--runs", "1", "--workers", "1"]
    tokens += ["--final-runs", "0"]
    given = ["--model", "dgt-light", "--dropout", "0.5", "--start", str(first), str(second)]
    assert main([*tokens, *given]) == 0
    tried = [record["settings"]["lr"] for record in records(out)]
    assert sorted(tried) == [0.01, 0.02, 0.04]
    assert all("dropout" not in record["settings"] for record in records(out))  # was given
    second.write_text("[train]\nlr = 0\n")
    assert main([*tokens, "--start", str(second)]) == 2
    assert "lr" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["dgt", "dgt-light", *OWN_SPACE, "sgc", "h2gcn", "mlp"])
def test_the_defaults_are_in_the_space(model):
    for space in (full_space(model), paper_grid(model)):
        for name, value in encode(Config.of(model), space).items():
            assert space[name]._contains(space[name].to_internal_repr(value)), name


def test_the_spaces_of_models():
    plus, gat, gcn = (full_space(model) for model in ("dgt-plus", "gat", "gcn"))
    assert "alike neighbors" in plus["criteria"].choices
    assert not any("-out" in each for each in plus["criteria"].choices + plus["encoding"].choices)
    directed = full_space("dgt-plus", directed=True)
    for name, choice in (("criteria", "alike-out"), ("encoding", "katz-out katz-in")):
        assert choice in directed[name].choices
        assert set(plus[name].choices) < set(directed[name].choices)
    assert plus["labels"].choices == ("none", "read", "hide")
    assert gcn["skip"].choices == (False, True)
    assert gat == gcn | {"heads": paper_grid("gat")["heads"]}
    assert full_space("sgc") == paper_grid("sgc")
    # what follows from the sizes of a graph is in the space, too
    for nodes in (10, 10_000):
        follows = MODELS["dgt-plus"].rule(Sizes(nodes, nodes, nodes, 5, 2, False))
        del follows["criteria"]
        for name, value in follows.items():
            assert plus[name]._contains(plus[name].to_internal_repr(value)), name


def test_settings_that_follow_from_the_graph_are_tried_first(graph, tmp_path, trained):
    """The graph has few features, so that dgt-plus has a wide kernel by default."""
    config = Config.of("dgt-plus")
    fitted = NodeClassifier(config.replace(epochs=1)).fit(load(graph)).config_.flat()
    assert fitted["gamma"] == 64 != config.model.gamma
    search(graph, config, tmp_path / "all", trials=1, runs=1, workers=1)
    found = records(tmp_path / "all")[0]["settings"]
    assert found.pop("criteria") == list(fitted["criteria"]) != list(config.criteria)
    assert found == {name: fitted[name] for name in full_space("dgt-plus") if name in found}
    assert {"gamma", "labels", "encoding"} <= found.keys()
    search(graph, config, tmp_path / "grid", grid="paper", trials=1, runs=1, workers=1)
    written = Config.from_dict(read_toml(tmp_path / "grid" / "colors-dgt-plus.toml"))
    assert written.model.gamma == 64
    given = config.replace(blocks=2)
    search(graph, given, tmp_path / "given", fixed=("blocks",), trials=1, runs=1, workers=1)
    written = Config.from_dict(read_toml(tmp_path / "given" / "colors-dgt-plus.toml"))
    assert (written.model.blocks, written.model.dropout) == (2, 0.2)


def test_a_search_continues_without_repeating_trials(graph, tmp_path, trained):
    find = {"runs": 1, "workers": 1}
    search(graph, Config.of("dgt"), tmp_path / "two", trials=4, **find)
    before = records(tmp_path / "two")
    assert len(trained) == 4
    search(graph, Config.of("dgt"), tmp_path / "two", trials=4, **find)
    assert len(trained) == 4
    assert records(tmp_path / "two") == before
    search(graph, Config.of("dgt"), tmp_path / "two", trials=9, **find)
    after = records(tmp_path / "two")
    assert after[:4] == before
    assert [r["trial"] for r in after] == list(range(9))
    assert len({json.dumps(r["settings"]) for r in after}) == 9
    # one worker: the same trials as a search that was never interrupted
    search(graph, Config.of("dgt"), tmp_path / "one", trials=9, **find)
    assert records(tmp_path / "one") == after


def test_a_killed_search_continues(graph, tmp_path, monkeypatch):
    calls = 0

    def train_once(graph, config, settings):
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return accuracy(settings), 0.1

    replace_training(monkeypatch, train_once)
    find = {"runs": 2, "workers": 1}
    with pytest.raises(KeyboardInterrupt):
        search(graph, Config.of("dgt"), tmp_path, trials=4, **find)
    before = records(tmp_path)
    assert [r["state"] for r in before] == ["complete", "complete"]
    assert (tmp_path / "colors-dgt.toml").exists()
    with open(tmp_path / "study.log", "ab") as file:
        file.write(b'{"op_code": 4, "wor')  # a truncated line
    assert search(graph, Config.of("dgt"), tmp_path, trials=12, **find)["trials"] == 12
    after = records(tmp_path)
    assert after[:2] == before
    assert after[2]["state"] == "interrupted"
    done = [r["settings"] for r in after if r["state"] != "interrupted"]
    assert len(done) == len(after) - 1
    assert done.count(after[2]["settings"]) == 1  # it is repeated ...
    (again,) = (r for r in after[3:] if r["settings"] == after[2]["settings"])
    assert again["values"][:1] == after[2]["values"]
    # ... and only the run that was interrupted is trained again
    assert calls - 1 == sum(len(r["values"]) for r in after if r["state"] != "interrupted")
    # all the settings that are tried first in a search that is not interrupted
    replace_training(monkeypatch, lambda *_: (0.5, 0.1))
    search(graph, Config.of("dgt"), tmp_path / "whole", trials=9, **find)
    assert all(r["settings"] in done for r in records(tmp_path / "whole"))


def test_trials_that_are_running_at_the_end_are_repeated(graph, tmp_path, monkeypatch):
    """However often: here the third run never ends, three times."""
    calls: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []

    class Slow:
        def submit(self, function, job):
            calls.append(job.settings)
            future = Future()
            if len(calls) % 3:
                future.set_result(Outcome(accuracy(job.settings), 0.1, 0.1))
            return future

    clock = itertools.count()
    told = types.SimpleNamespace(monotonic=lambda: next(clock))
    monkeypatch.setattr("dgt.tune.schedule.time", told)
    monkeypatch.setattr("dgt.tune.schedule.TICK", 0.01)
    monkeypatch.setattr("dgt.tune.schedule.processes", lambda *_: nullcontext(Slow()))
    for number in (1, 2, 3):
        # What was interrupted comes first.
        before = [r["settings"] for r in rows if r["state"] == "interrupted"]
        search(graph, Config.of("dgt"), tmp_path, runs=1, hours=100 / 3600, workers=1)
        assert before[-1:] in ([], [as_json(calls[3 * number - 3])])
        rows = records(tmp_path)
        assert sum(r["state"] == "interrupted" for r in rows) == number
        assert sum(r["state"] == "complete" for r in rows) == 2 * number
    replace_training(monkeypatch, lambda *_: (0.5, 0.1))
    search(graph, Config.of("dgt"), tmp_path, trials=12, runs=1, workers=1)
    done = [r["settings"] for r in records(tmp_path) if r["state"] == "complete"]
    assert len(done) == 12
    assert all(r["settings"] in done for r in rows)


def test_the_records_can_be_restored_from_the_study(graph, tmp_path, trained):
    search(graph, Config.of("dgt"), tmp_path, trials=3, runs=2, workers=1)
    made = {path: (tmp_path / path).read_text() for path in ("trials.jsonl", "colors-dgt.toml")}
    for path in made:
        (tmp_path / path).unlink()
    search(graph, Config.of("dgt"), tmp_path, trials=3, runs=2, workers=1)
    assert made == {path: (tmp_path / path).read_text() for path in made}


@pytest.mark.parametrize("model", ["dgt", "dgt-light"])
def test_the_best_settings_are_a_config_file_for_train(
    graph, tmp_path, trained, monkeypatch, model
):
    config = Config.of("dgt").replace(model=model, epochs=7, seed=3, split=1)
    found = search(graph, config, tmp_path, fixed=("epochs",), trials=24, workers=2)
    path = Path(found["preset"])
    assert path == tmp_path / f"colors-{model}.toml"
    complete = [r for r in records(tmp_path) if r["state"] == "complete"]
    best = max(complete, key=lambda r: r["val_accuracy"])
    assert (
        best["val_accuracy"] == found["val_accuracy"] == pytest.approx(accuracy(best["settings"]))
    )
    expected = Config.of("dgt").replace(
        model=model, epochs=7, metric="accuracy", **best["settings"]
    )
    assert Config.from_dict(read_toml(path)) == expected
    text = path.read_text()
    assert text.startswith(f"# Validation accuracy {best['val_accuracy']:.2%}, the mean of 3 runs")
    assert "(defaults: 89.00%): the best of 24 trials" in text

    seen = []
    monkeypatch.setattr(
        "dgt.runs.many.train_runs", lambda data, config, out, **_: seen.append(config)
    )
    monkeypatch.setattr("dgt.cli.train.show_metrics", lambda *_: None)
    assert main(["train", graph, "--config", str(path), "--out", str(tmp_path / "run")]) == 0
    assert seen == [expected]


def test_given_settings_are_not_searched(graph, tmp_path, trained):
    file = tmp_path / "settings.toml"
    file.write_text("[model]\nblocks = 2\ngamma = 3.5\n")
    out = tmp_path / "out"
    tokens = ["tune", graph, "--out", str(out), "--quiet", "--trials", "12", "--runs", "1"]
    tokens += ["--final-runs", "0"]
    # set explicitly, even if to the default
    assert main([*tokens, "--config", str(file), "--lr", "0.01", "--gamma", "9"]) == 0
    for settings in trained:
        assert not {"lr", "blocks", "gamma"} & settings.keys()
        assert "dropout" in settings
    best = Config.from_dict(read_toml(out / "colors-dgt-plus.toml"))
    assert (best.train.lr, best.model.blocks, best.model.gamma) == (0.01, 2, 9)
    every = [f"--{name}={value}" for name, value in points(paper_grid("dgt"))[0].items()]
    tokens = ["tune", graph, "--out", str(tmp_path / "new"), "--model", "dgt", "--grid", "paper"]
    assert main([*tokens, *(flag.replace("_", "-", 1) for flag in every)]) == 2
    assert not (tmp_path / "new").exists()


def test_katz_settings_are_searched_with_katz_only(graph, tmp_path, trained):
    found = search(graph, Config.of("dgt"), tmp_path, trials=40, runs=1, workers=1)
    assert found["importances"].keys() <= SPACE.keys()
    assert max(found["importances"], key=lambda name: found["importances"][name]) == "lr"
    assert sum(found["importances"].values()) == pytest.approx(1)
    both = Counter(settings["encoding"] for settings in trained)
    assert min(both["katz"], both["none"]) > 0
    for settings in trained:
        assert ("katz_order" in settings) == (settings["encoding"] == "katz")


def test_a_search_of_ensembles_is_refused(graph, tmp_path, trained):
    with pytest.raises(InputError, match="members: got 3, expected 1: a search compares single"):
        search(graph, Config.of("gcn").replace(members=3), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_another_search_is_refused(graph, tmp_path, trained, capsys):
    out = tmp_path / "out"
    find = {"trials": 1, "runs": 2, "workers": 1}
    search(graph, Config.of("dgt"), out, **find)
    before = {path: path.read_bytes() for path in out.iterdir()}
    for changed, config, keywords in [
        ("runs was 2, now 3", Config.of("dgt"), {"runs": 3}),
        ("epochs was 1000, now 5", Config.of("dgt").replace(epochs=5), {}),
        ("lr was searched in", Config.of("dgt"), {"fixed": ("lr",)}),
        ("lr at the start was 0.01, now 0.02", Config.of("dgt").replace(lr=0.02), {}),
        ("grid was None, now paper", Config.of("dgt"), {"grid": "paper"}),
        (
            "settings: model was dgt, now dgt-light; choose",
            Config.of("dgt").replace(model="dgt-light"),
            {},
        ),
    ]:
        with pytest.raises(InputError, match=changed):
            search(graph, config, out, **(find | keywords))
    other = write_folder(tmp_path / "other", block_graph())
    with pytest.raises(InputError, match="graph was"):
        search(str(other), Config.of("dgt"), out, **find)
    with pytest.raises(InputError, match="not the folder of a search"):
        search(graph, Config.of("dgt"), other, **find)
    assert before == {path: path.read_bytes() for path in out.iterdir()}


def test_two_searches_do_not_share_a_folder(graph, tmp_path, monkeypatch):
    pytest.importorskip("fcntl")

    def train_once(*_):
        with pytest.raises(InputError, match="another search is running in this folder"):
            search(graph, Config.of("dgt"), tmp_path, trials=1)
        return 0.5, 0.1

    replace_training(monkeypatch, train_once)
    assert search(graph, Config.of("dgt"), tmp_path, trials=1)["val_accuracy"] == 0.5


def test_the_grid_has_every_point_once(graph, tmp_path, trained):
    assert len(points(paper_grid("dgt"))) == 162 == 3 * 3 * 2 * 9
    find = {"grid": "paper", "runs": 1, "workers": 2}
    fixed = {"fixed": ("gamma",)}
    search(graph, Config.of("dgt"), tmp_path, trials=5, **find, **fixed)
    assert len(trained) == 5
    assert search(graph, Config.of("dgt"), tmp_path, **find, **fixed)["trials"] == 18
    tried = {(s["lr"], s["weight_decay"], s["blocks"]) for s in trained}
    assert len(trained) == len(tried) == 18
    search(graph, Config.of("dgt"), tmp_path, trials=99, **find, **fixed)
    assert len(trained) == 18


def require_halving(rows: list[dict[str, Any]], runs: int, sign: int = 1) -> None:
    """Checks after how many runs each trial was stopped, if all runs of a trial are equally good.

    Args:
        rows: The trials of a search with one worker.
        runs: Number of runs of a trial that is not stopped.
        sign: -1 if smaller values are better.
    """
    steps = [step for step in (1, 3, 9) if step < runs]
    for i, row in enumerate(rows):
        count = len(row["values"])
        assert count in (*steps, runs)
        assert row["state"] == ("complete" if count == runs else "pruned")
        for step in steps:
            if count < step or i == 0:  # the settings at the start always go on
                continue
            others = [sign * r["values"][0] for r in rows[:i] if len(r["values"]) >= step]
            better = sum(value > sign * row["values"][0] for value in others)
            goes_on = len(others) < 5 or better < -(-(len(others) + 1) // 2)
            assert (count > step) == goes_on


def test_only_the_better_half_goes_on(graph, tmp_path, trained):
    found = search(graph, Config.of("dgt"), tmp_path, trials=40, runs=5, workers=1)
    rows = records(tmp_path)
    require_halving(rows, runs=5)
    states = Counter(r["state"] for r in rows)
    assert found["states"] == {
        "complete": states["complete"],
        "pruned": states["pruned"],
        "failed": 0,
    }
    assert min(states["pruned"], states["complete"]) > 5
    assert len(found["importances"]) > 0


def test_a_stopped_trial_is_never_the_best(graph, tmp_path, monkeypatch):
    """Here the first split is misleading: only trials on all splits are chosen."""

    def train_once(graph, config, settings):
        first = config.train.split_index == 0
        return (0.9 if first and settings["lr"] != 0.01 else 0.5), 0.1

    replace_training(monkeypatch, train_once)
    found = search(graph, Config.of("dgt"), tmp_path, trials=15, workers=1)
    complete = [r for r in records(tmp_path) if r["state"] == "complete"]
    mean = max(sum(r["values"]) / 3 for r in complete)
    assert found["val_accuracy"] == pytest.approx(mean)
    assert len(found["best"][0]["values"]) == 3
    counts = [len(trial["values"]) for trial in found["best"]]
    assert counts == sorted(counts, reverse=True)


def test_the_defaults_the_preset_and_the_grid_come_first(tmp_path, trained):
    search("cora", Config.of("dgt"), tmp_path, trials=15, runs=1, workers=1)
    tried = [r["settings"] for r in records(tmp_path)]
    preset = Config.from_dict(read_preset("cora", "dgt")).flat()
    start = Config.of("dgt").flat()
    assert all(start[name] == value for name, value in tried[0].items())
    # the preset exactly, also where it is not in the search space
    assert preset["length"] == 64 != start["length"]
    changed = {k: v for k, v in preset.items() if v != start[k] and k not in ("metric", "criteria")}
    unused = {"katz_order", "katz_beta", "katz_scaling"} | {
        "encoding_dropout", "encoding_weight_decay",
    }  # fmt: skip
    assert preset["encoding"] == "none"
    for name, value in changed.items():
        assert name in unused or tried[1][name] == value, name
    for number, known in enumerate(KNOWN["dgt"], start=2):
        assert known.items() <= tried[number].items()
    grid = paper_grid("dgt")
    for settings in tried[2 + len(KNOWN["dgt"]) : 10 + len(KNOWN["dgt"])]:
        for name, value in settings.items():
            allowed = grid[name].choices if name in grid else (start[name],)
            assert value in allowed, name


def test_a_search_ends_when_its_time_is_used_up(graph, tmp_path, monkeypatch):
    clock, lock = [0.0], threading.Lock()

    def train_once(graph, config, settings):
        with lock:
            clock[0] += 0.05
        return accuracy(settings), 0.05

    replace_training(monkeypatch, train_once)
    told = types.SimpleNamespace(monotonic=lambda: clock[0])
    for module in ("schedule", "share"):
        monkeypatch.setattr(f"dgt.tune.{module}.time", told)
    for models in (("dgt",), ("dgt", "gcn", "dgt-light")):
        folder = tmp_path / str(len(models))
        configs = {folder / model: Config.of(model) for model in models}
        for _ in range(2):  # the second time it continues
            before = {out: len(records(out)) if out.exists() else 0 for out in configs}
            found = search_models(graph, configs, runs=2, hours=2 / 3600, workers=2)
            for out, each in zip(configs, found, strict=True):
                rows = records(out)
                assert len(rows) > before[out]
                assert each["states"]["complete"] > 0
                assert Path(each["preset"]).is_file()
                assert (out / "report.md").read_text().startswith("# Search for ")
    runs = [sum(len(r["values"]) for r in records(out)) for out in configs]
    assert max(runs) <= 1.5 * min(runs)  # the models share the time


def test_too_little_time(graph, tmp_path, monkeypatch):
    """The error says how far a trial got, and what to set."""
    replace_training(monkeypatch, lambda *_: (time.sleep(0.3), 0.1))
    with pytest.raises(InputError, match="no trial is complete: no run was started; to continue"):
        search(graph, Config.of("dgt"), tmp_path / "none", hours=0.0001 / 3600, workers=1)

    class Slow:
        """Finishes some runs at once and none after them."""

        def __init__(self, runs: int) -> None:
            self.left = runs

        def submit(self, function, job):
            self.left -= 1
            future = Future()
            if self.left >= 0:
                future.set_result(Outcome(0.5, 40.0, 40.0))
            return future

    texts = []
    for runs in (0, 1):
        pool = nullcontext(Slow(runs))
        monkeypatch.setattr("dgt.tune.schedule.processes", lambda *_, pool=pool: pool)
        with pytest.raises(InputError) as raised:
            search(graph, Config.of("dgt"), tmp_path / str(runs), hours=2 / 3600, workers=1)
        texts.append(str(raised.value))
    assert "the first of 3 runs of a trial was not finished after 2 s; to continue" in texts[0]
    assert "1 of 3 runs, 40 s each, and takes about 2 min in all; to continue, run" in texts[1]
    assert "the same command with more --hours; or search in another folder" in texts[1]
    configs = {tmp_path / "both" / model: Config.of(model) for model in ("gcn", "mlp")}
    found = search_models(graph, configs, hours=0.2 / 3600, workers=1)
    assert "with more --hours or fewer --models; or search" in found[0]["error"]


def test_several_models_from_the_command_line(graph, tmp_path, trained, capsys):
    tokens = ["tune", graph, "--models", "dgt-light", "gcn", "--out", str(tmp_path / "out")]
    tokens += ["--trials", "3", "--runs", "1", "--workers", "1", "--lr", "0.03"]
    tokens += ["--final-runs", "0"]
    assert main(tokens) == 0
    shown = capsys.readouterr()
    assert "Best settings of each model" in shown.out
    assert "gcn: val" in shown.err
    for model in ("dgt-light", "gcn"):
        folder = tmp_path / "out" / f"colors-{model}"
        best = Config.from_dict(read_toml(folder / f"colors-{model}.toml"))
        assert (best.model.model, best.train.lr) == (model, 0.03)
        assert len(records(folder)) == 3
    assert main([*tokens, "--json", "--quiet"]) == 0
    assert [each["model"] for each in json.loads(capsys.readouterr().out)] == ["dgt-light", "gcn"]
    for extra in (["--model", "gcn"], ["--start", str(folder / "colors-gcn.toml")]):
        assert main([*tokens, *extra]) == 2
        assert "--models: cannot be combined" in capsys.readouterr().err
    assert main(["tune", graph, "--models", "gnc"]) == 2
    assert main(["tune", graph, "--hours", "0"]) == 2


def test_a_trial_that_fails_does_not_end_the_search(graph, tmp_path, monkeypatch, capsys):
    def train_once(graph, config, settings):
        if settings["lr"] > 0.02:
            raise InputError("epoch 3: the loss is no longer finite")
        return accuracy(settings), 0.1

    replace_training(monkeypatch, train_once)
    search(graph, Config.of("dgt"), tmp_path / "some", trials=20, runs=2, workers=1, progress=True)
    rows = records(tmp_path / "some")
    assert len(rows) == 20
    failed = [r for r in rows if r["settings"]["lr"] > 0.02]
    assert failed
    for row in rows:
        assert (row["state"] == "failed") == (row in failed)
    assert failed[0]["error"] == "epoch 3: the loss is no longer finite"
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "searching settings of dgt on colors: 20 trials, up to 2 runs each"
    shown = [line for line in shown[1:] if "training" not in line]
    assert len(shown) == 20
    assert shown[0] == "1 of 20 trials: val 89.00%, mean of 2 runs; best 89.00% (the defaults)"
    assert any("failed: epoch 3" in line for line in shown)
    with pytest.raises(InputError, match="no trial is complete: epoch 3"):
        search(
            graph, Config.of("dgt").replace(lr=0.04), tmp_path / "all", trials=1, runs=2, workers=1
        )


def test_test_nodes_are_not_used(tmp_path, monkeypatch):
    from dgt.tune.worker import train_once

    replace_training(monkeypatch, lambda *_: (0.5, 0.1))
    monkeypatch.setattr("dgt.tune.schedule.train_once", train_once)
    config = Config.of("dgt").replace(epochs=4, hidden_channels=16)
    found = []
    for name in ("one", "two"):
        data = block_graph()
        part = torch.arange(90) % 5 % 3
        data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
        if name == "two":  # other labels for the test nodes
            data.y[data.test_mask] = data.y[data.test_mask].roll(1)
        torch.save(data, tmp_path / f"{name}.pt")
        out = tmp_path / name
        search(str(tmp_path / f"{name}.pt"), config, out, trials=2, runs=2, workers=1)
        found.append([{k: v for k, v in r.items() if k != "seconds"} for r in records(out)])
        assert not any(
            "test" in path.read_text() for path in out.iterdir() if path.suffix == ".jsonl"
        )
    assert found[0] == found[1]


def test_your_own_graph_from_the_command_line(graph, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    tokens = ["tune", graph, "--trials", "2", "--epochs", "2", "--hidden-channels", "16"]
    tokens += ["--final-runs", "0"]
    assert main([*tokens, "--runs", "2", "--workers", "1"]) == 0
    shown = capsys.readouterr()
    assert "2 of 2 trials" in shown.err
    assert (
        f"next: dgt train {graph} --config tune/colors-dgt-plus/colors-dgt-plus.toml" in shown.out
    )
    assert sorted(path.name for path in Path("tune/colors-dgt-plus").iterdir()) == [
        *("colors-dgt-plus.toml", "history.png", "report.md"),
        *("search.json", "study.log", "trials.jsonl"),
    ]
    assert main([*tokens, "--runs", "2", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["trials"] == 2
    assert shown.err == ""


@pytest.mark.parametrize(
    ("tokens", "part"),
    [
        (["cora", "--trials", "0"], "--trials"),
        (["cora", "--workers", "0"], "--workers"),
        (["cora", "--runs", "0"], "--runs"),
        (["cora", "--grid", "mine"], "paper"),
        (["coora"], "'cora'"),
        (["cora", "--splits", "given"], "expected auto or random"),
    ],
)
def test_invalid_arguments_are_refused_before_any_trial(
    tmp_path, monkeypatch, capsys, tokens, part
):
    monkeypatch.chdir(tmp_path)
    assert main(["tune", *tokens]) == 2
    assert part in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_trials_are_compared_by_the_metric_of_the_settings(graph, tmp_path, monkeypatch, capsys):
    """For a loss, the smallest value is the best, and trials with large values are pruned."""

    def train_once(graph: str, config: Config, settings: dict[str, Any]) -> tuple[float, float]:
        assert config.train.metric == "log-loss"
        return 2 * (1 - accuracy(settings)), 0.1

    replace_training(monkeypatch, train_once)
    config = Config.of("dgt").replace(metric="log-loss")
    found = search(graph, config, tmp_path, trials=20, workers=1, progress=True)
    rows = records(tmp_path)
    complete = [r for r in rows if r["state"] == "complete"]
    best = min(complete, key=lambda r: r["val_log-loss"])
    assert found["metric"] == "log-loss"
    assert found["val_log-loss"] == best["val_log-loss"] == found["best"][0]["val_log-loss"]
    assert {r["state"] for r in rows} == {"complete", "pruned"}
    require_halving(rows, runs=3, sign=-1)
    text = Path(found["preset"]).read_text()
    assert text.startswith(f"# Validation log-loss {best['val_log-loss']:.4f}, the mean of 3 runs")
    assert Config.from_dict(read_toml(Path(found["preset"]))).train.metric == "log-loss"
    assert "val 0.2200, mean of 3 runs; best 0.2200" in capsys.readouterr().err


def test_a_search_older_than_the_metric_setting_continues(graph, tmp_path, trained):
    search(graph, Config.of("dgt"), tmp_path, trials=1, runs=1, workers=1)
    path = tmp_path / "search.json"
    written = json.loads(path.read_text())
    assert "device" not in written["settings"]  # a search may continue on another device
    del written["settings"]["metric"]
    path.write_text(json.dumps(written))
    assert search(graph, Config.of("dgt"), tmp_path, trials=2, runs=1, workers=1)["trials"] == 2
    with pytest.raises(InputError, match="metric was accuracy, now macro-f1"):
        search(graph, Config.of("dgt").replace(metric="macro-f1"), tmp_path, trials=2, runs=1)


@pytest.mark.parametrize("model", ["dgt", "gcn", "mlp"])
def test_a_search_older_than_norm_and_skip_continues(graph, tmp_path, trained, model):
    """Searches of graph neural networks recorded the norm of dgt, which they did not have."""
    find = {"grid": "paper", "runs": 1, "workers": 1}
    search(graph, Config.of(model), tmp_path, trials=1, **find)
    path = tmp_path / "search.json"
    written = json.loads(path.read_text())
    for name in ("skip", "labels"):
        del written["settings"][name]
    written["settings"]["norm"] = "layer"
    path.write_text(json.dumps(written))
    assert search(graph, Config.of(model), tmp_path, trials=2, **find)["trials"] == 2
    other = Config.of(model).replace(norm="batch")
    with pytest.raises(InputError, match=r"norm was (none|layer), now batch"):
        search(graph, other, tmp_path, trials=2, **find)
    with pytest.raises(InputError, match="skip was False, now True"):
        search(graph, Config.of(model).replace(skip=True), tmp_path, trials=2, **find)


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *((r"\A", f"{line}\n") for line in ("{", "[]", "7", "{}", "\x00", "", DEEP)),
        (r"\Z", '{"op_code": "4"}\n'),
        (r"\Z", "{\n"),
        (r'"op_code":\d+', '"op_code":99'),
        (r'"study_name":"tune"', '"study_name":"other"'),
        (r'"study_id":0', '"study_id":1'),
        (r'"study_id":0', '"study_id":"0"'),
        (r'"trial_id":0', '"trial_id":99'),
        (r'"directions":\[\d\]', '"directions":[1]'),
        (r'"user_attr":\{"values":\[[^]]*\]\}', '"user_attr":{"values":"many"}'),
        (r'"user_attr":\{"seconds":[^}]*\}', '"user_attr":{"seconds":"long"}'),
        (r'"intermediate_value":[^,}]*', '"intermediate_value":"x"'),
        (r'"step":1', '"step":3'),
        (r'("state":1,"values":)\[[^]]*\]', r"\1[NaN]"),
    ],
)
def test_a_damaged_study(graph, tmp_path, trained, old, new):
    search(graph, Config.of("dgt"), tmp_path, trials=1, runs=1, workers=1)
    path = tmp_path / "study.log"
    text = re.sub(old, new, path.read_text())
    assert text != path.read_text()
    path.write_text(text)
    before = {each: each.read_bytes() for each in tmp_path.iterdir()}
    with pytest.raises(InputError, match=r"study\.log: ") as error:
        search(graph, Config.of("dgt"), tmp_path, trials=2, runs=1, workers=1)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"settings": 3}', DEEP, "\x00"])
def test_a_damaged_identity_of_a_search(graph, tmp_path, text):
    (tmp_path / "search.json").write_text(text)
    with pytest.raises(InputError, match=r"search\.json: "):
        search(graph, Config.of("dgt"), tmp_path, trials=1, runs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["search.json"]


def test_a_search_that_cannot_succeed_ends_soon(tmp_path, monkeypatch):
    graph = write_folder(tmp_path / "graph", block_graph())
    config = Config.of("dgt").replace(**QUICK | {"epochs": 2}, criteria=("bfs",))
    calls = []

    def fails(*_: object) -> None:
        calls.append(1)
        raise InputError("metric 'own': got nan, expected a finite number")

    class Inline:
        def submit(self, function, *arguments):
            future = Future()
            try:
                future.set_result(function(*arguments))
            except InputError as error:
                future.set_exception(error)
            return future

    monkeypatch.setattr("dgt.tune.schedule.train_once", fails)
    monkeypatch.setattr("dgt.tune.schedule.processes", lambda *_: nullcontext(Inline()))
    with pytest.raises(InputError, match="the first 3 trials failed: metric 'own': got nan"):
        search(str(graph), config, tmp_path / "out", trials=50, workers=1)
    assert len(calls) == 3


def test_a_lack_of_memory_is_an_error_of_the_settings(monkeypatch) -> None:
    def fit(*_: object, **__: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 TB")

    from dgt.tune.worker import train_once

    monkeypatch.setattr("dgt.estimator.NodeClassifier.validate", fit)
    config = Config().replace(metric="accuracy")
    with pytest.raises(InputError, match="out of memory"):
        train_once(Job("synthetic:nodes=30,edges=60,features=4,classes=2", config, {}))
