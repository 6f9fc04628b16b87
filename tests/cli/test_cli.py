"""The commands as users type them."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest
import torch
from torch_geometric.data import Data

from dgt import NodeClassifier, config
from dgt.cli import main
from dgt.config import MODELS, Config, presets, read_toml
from dgt.data import NAMES
from dgt.evaluate import summarize
from dgt.runs.files import read_settings
from tests.small import LABELS, block_graph, flags, write_folder


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("graphs") / "colors", block_graph())


@pytest.fixture(scope="module")
def run(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["train", str(graph), "--out", str(out), "--quiet", *flags()]) == 0
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def refused(capsys, tokens: list[str | Path], *parts: str) -> str:
    """Runs a command that must fail with a one-line error that contains all ``parts``."""
    capsys.readouterr()
    assert main([str(token) for token in tokens]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    for part in parts:
        assert part in err
    return err


def test_train_writes_a_run(run: Path, graph: Path):
    assert sorted(p.name for p in run.iterdir()) == [
        "config.toml", "metrics.json", "metrics.jsonl", "model.safetensors", "predictions.parquet",
    ]  # fmt: skip
    metrics = json.loads((run / "metrics.json").read_text())
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert metrics["epochs"] == len(rows) == 30
    assert metrics["seed"] == 0
    assert metrics["splits"] == "random"
    assert metrics["graph"] == str(graph.resolve())
    assert rows[metrics["best_epoch"] - 1]["val_accuracy"] == metrics["val_accuracy"]
    settings = read_settings(run)
    assert settings.graph == str(graph.resolve())
    # dgt-plus with what it chooses for few features and few training nodes.
    assert settings.config == Config.of("dgt-plus").replace(
        hidden_channels=16, length=8, epochs=30, patience=30, criteria=["neighbors", "ppr"],
        gamma=64.0, epsilon=16.0, norm="batch", dropout=0.2, input_dropout=0.0, value_dropout=0.0,
        key_weight_decay=1.0, average=0.9,
    )  # fmt: skip
    # Recompute the accuracy from the predictions and labels on disk.
    table = pyarrow.parquet.read_table(run / "predictions.parquet").to_pylist()
    with open(graph / "nodes.csv") as file:
        labels = {row["id"]: row["label"] for row in csv.DictReader(file)}
    assert [row["id"] for row in table] == list(labels)
    right = [row["prediction"] == labels[row["id"]] for row in table if labels[row["id"]]]
    sizes = {"train": 0.48, "val": 0.32, "test": 0.2}
    expected = sum(metrics[f"{part}_accuracy"] * size for part, size in sizes.items())
    assert sum(right) / len(right) == pytest.approx(expected, abs=0.02)
    assert all(1 / 3 <= row["probability"] <= 1 for row in table)


def test_train_says_what_comes_next(graph: Path, tmp_path: Path, capsys):
    out = tmp_path / "run"
    assert main(["train", str(graph), "--out", str(out), *flags(epochs=2)]) == 0
    shown = capsys.readouterr()
    assert f"results in {out}" in shown.out
    assert f"dgt predict {out} --out predictions.csv" in shown.out
    assert "test" in shown.out


def test_json_is_all_of_stdout(graph: Path, tmp_path: Path, capsys):
    out = tmp_path / "run"
    assert main(["train", str(graph), "--out", str(out), "--json", *flags(epochs=2)]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((out / "metrics.json").read_text())


def test_without_out_the_next_free_folder_is_taken(
    graph: Path, tmp_path: Path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for n in (1, 2):
        assert main(["train", str(graph), *flags(epochs=1), "--quiet"]) == 0
        assert f"results in runs/colors-{n}" in capsys.readouterr().out
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == ["colors-1", "colors-2"]


def test_predict_again_gives_the_run_s_predictions(run: Path, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # config.toml has the absolute path of the graph
    assert main(["predict", str(run), "--out", "p.parquet"]) == 0
    assert (tmp_path / "p.parquet").read_bytes() == (run / "predictions.parquet").read_bytes()
    assert main(["predict", str(run), "--out", "p.csv"]) == 0
    with open("p.csv") as file:
        rows = list(csv.DictReader(file))
    expected = pyarrow.parquet.read_table("p.parquet").to_pylist()
    assert [(r["id"], r["prediction"]) for r in rows] == [
        (r["id"], r["prediction"]) for r in expected
    ]
    assert {r["prediction"] for r in rows} <= set(LABELS[:3])


def test_predict_on_another_graph(run: Path, tmp_path: Path, capsys):
    other = write_folder(tmp_path / "other", block_graph(nodes=60, seed=1), label="label")
    # The labels of the training graph do not carry over, although both have nodes n0 to n59.
    refused(capsys, ["predict", run, other, "--out", tmp_path / "p.csv"], "--labels none")
    # Neither does the Katz encoding.
    graph, dgt = read_settings(run).graph, tmp_path / "dgt"
    assert main(["train", graph, "--out", str(dgt), "--model=dgt", *flags(epochs=2)]) == 0
    refused(capsys, ["predict", dgt, other, "--out", tmp_path / "p.csv"], "--encoding none")
    assert not (tmp_path / "p.csv").exists()
    plain = tmp_path / "plain"
    assert main(["train", graph, "--out", str(plain), *flags(epochs=2, labels="none")]) == 0
    assert main(["predict", str(plain), str(other), "--out", str(tmp_path / "p.csv")]) == 0
    with open(tmp_path / "p.csv") as file:
        assert [row["id"] for row in csv.DictReader(file)] == [f"n{i}" for i in range(60)]
    assert main(["train", str(other), "--out", str(tmp_path / "r"), *flags(epochs=1)]) == 0
    narrow = write_folder(tmp_path / "narrow", block_graph(features=11))
    refused(
        capsys,
        ["predict", run, narrow, "--out", tmp_path / "q.csv"],
        "no column 'f11', which the model was trained with",
    )
    assert not (tmp_path / "q.csv").exists()


def test_predict_replaces_a_file_only_when_told_to(run: Path, tmp_path: Path, capsys):
    out = tmp_path / "p.csv"
    out.write_text("my,own,file\n")
    refused(capsys, ["predict", run, "--out", out], str(out), "exists", "--overwrite")
    assert out.read_text() == "my,own,file\n"
    assert main(["predict", str(run), "--out", str(out), "--overwrite", "--quiet"]) == 0
    written = out.read_bytes()
    assert written.startswith(b'"id","prediction","probability","split","probability:blue",')
    refused(capsys, ["predict", run, "--out", out], "exists")  # even its own predictions
    assert out.read_bytes() == written


def test_predict_never_replaces_an_input(graph: Path, run: Path, tmp_path: Path, capsys):
    before = contents(graph) | contents(run)
    (tmp_path / "link.csv").symlink_to(run / "model.safetensors")
    (tmp_path / "hard.csv").hardlink_to(graph / "edges.csv")
    places = [graph / "nodes.csv", graph / "edges.csv", graph / ".." / graph.name / "nodes.csv"]
    for out in (*places, tmp_path / "link.csv", tmp_path / "hard.csv"):
        for tokens in ([run, "--out", out], [run, graph, "--out", out]):
            for flag in ([], ["--overwrite"]):
                refused(capsys, ["predict", *tokens, *flag], str(out), "is an input")
    assert contents(graph) | contents(run) == before


def test_predict_refuses_bad_models_and_files(run: Path, tmp_path: Path, capsys):
    refused(capsys, ["predict", tmp_path / "none", "--out", "p.csv"], "no such folder")
    refused(capsys, ["predict", tmp_path, "--out", "p.csv"], "no config.toml")
    refused(capsys, ["predict", run, "--out", tmp_path / "p.txt"], "p.txt", ".csv or .parquet")
    refused(capsys, ["predict", run, "--out", run / "config.toml" / "p.csv"], "cannot write")
    refused(capsys, ["predict", run], "--out")
    broken = tmp_path / "broken"
    broken.mkdir()
    for name in ("config.toml", "model.safetensors"):
        (broken / name).write_bytes((run / name).read_bytes())
    (broken / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes()[:500])
    refused(capsys, ["predict", broken, "--out", tmp_path / "p.csv"], "model.safetensors", "trunc")
    (broken / "config.toml").write_text("length = ")
    refused(capsys, ["predict", broken, "--out", tmp_path / "p.csv"], "config.toml", "not a TOML")
    assert [p.name for p in tmp_path.iterdir()] == ["broken"]


def test_info(graph: Path, capsys):
    assert main(["info", str(graph), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    data = block_graph()
    source, target = data.edge_index
    labelled = torch.arange(90) % 10 != 9
    both = labelled[source] & labelled[target]
    columns = facts.pop("columns")
    assert [row["column"] for row in columns][:2] == ["id", "label"]
    assert [row["kind"] for row in columns[2:]] == ["number"] * 12
    assert facts == {
        "nodes": 90,
        "edges": data.edge_index.size(1),
        "features": 12,
        "classes": 3,
        "homophily": pytest.approx((data.y[source] == data.y[target])[both].double().mean().item()),
        "labelled": 81,
        "directed": False,
    }
    assert main(["info", str(graph)]) == 0
    assert "homophily" in capsys.readouterr().out


def test_several_runs_are_summed_up(graph: Path, tmp_path: Path, capsys):
    out = tmp_path / "many"
    assert (
        main(
            [
                "train",
                str(graph),
                "--out",
                str(out),
                "--runs",
                "3",
                "--quiet",
                *flags(epochs=3, seed=5),
            ]
        )
        == 0
    )
    assert "95% CI" in capsys.readouterr().out
    each = [json.loads((out / f"run-0{r}" / "metrics.json").read_text()) for r in range(3)]
    assert [(m["seed"], m["split"]) for m in each] == [(5, 5), (6, 6), (7, 7)]
    summary = json.loads((out / "metrics.json").read_text())
    expected = summarize([m["test_accuracy"] for m in each])
    assert summary["test_accuracy"] == expected["mean"]
    assert summary["test_accuracy_std"] == expected["std"]
    assert summary["test_accuracy_ci95"] == expected["ci95"]
    assert len(summary["runs"]) == 3
    refused(capsys, ["predict", out, "--out", tmp_path / "p.csv"], "holds 3 runs", "run-00")
    # Each of several runs can be used like a single one.
    alone = tmp_path / "alone"
    assert main(["train", str(graph), "--out", str(alone), *flags(epochs=3, seed=6, split=6)]) == 0
    assert (alone / "model.safetensors").read_bytes() == (
        out / "run-01" / "model.safetensors"
    ).read_bytes()
    capsys.readouterr()
    before = contents(out)
    again = ["train", str(graph), "--out", str(out), "--runs", "3", "--resume", "--quiet"]
    assert main(again) == 0
    assert "already complete" in capsys.readouterr().err
    assert contents(out) == before
    # Nothing but the number of runs is to blame.
    refused(
        capsys,
        ["train", graph, "--out", out, "--resume"],
        "cannot resume with other settings: runs was 3, now 1; add --runs 3\n",
    )


def test_runs_over_published_splits_take_each_split_then_the_next_seed(tmp_path: Path):
    data = block_graph()
    part = torch.stack([torch.arange(90).roll(s) % 5 % 3 for s in range(2)], dim=1)
    data.train_mask, data.val_mask, data.test_mask = part == 0, part == 1, part == 2
    torch.save(data, tmp_path / "graph.pt")
    out = tmp_path / "out"
    tokens = ["train", str(tmp_path / "graph.pt"), "--out", str(out), "--runs", "3", "--quiet"]
    assert main([*tokens, *flags(epochs=1)]) == 0
    runs = json.loads((out / "metrics.json").read_text())["runs"]
    assert [(run["seed"], run["split"]) for run in runs] == [(0, 0), (0, 1), (1, 0)]


def test_every_setting_is_a_flag_and_in_the_help(capsys):
    assert main(["train", "--help"]) == 0
    shown = capsys.readouterr().out
    for name in Config().flat():
        assert f"--{name.replace('_', '-')}" in shown
    for title in ("Sequences", "Positional encoding", "Model", "Training"):
        assert f"─ {title} ─" in shown


def test_the_help_shows_the_defaults_of_the_default_model(capsys):
    for command in ("train", "tune", "prepare"):
        assert main([command, "--help"]) == 0
        words = " ".join(capsys.readouterr().out.replace("│", " ").split())
        for name, value in Config.of("dgt-plus").flat().items():
            if value is not None:
                ours = words.split(f" --{name.replace('_', '-')} ")[1].split("[default: ")[1]
                assert ours.startswith(f"{value}]"), name


@pytest.mark.parametrize("model", [None, *MODELS])
@pytest.mark.parametrize(
    "given", [{}, {"hidden_channels": 8}, {"lr": 0.5}, {"length": 7, "katz_beta": 0.25}]
)
def test_flags_mean_the_same_as_keywords(monkeypatch, model: str | None, given: dict[str, float]):
    seen = []
    monkeypatch.setattr("dgt.data.load", lambda *_: None)
    monkeypatch.setattr(
        "dgt.runs.many.train_runs", lambda data, config, out, **_: seen.append(config)
    )
    monkeypatch.setattr("dgt.cli.train.show_metrics", lambda *_: None)
    tokens = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    chosen = {} if model is None else {"model": model}
    assert (
        main(["train", "cora", "--out=x", *tokens, *(f"--model={m}" for m in chosen.values())]) == 0
    )
    assert seen[-1] == NodeClassifier(**chosen, **given).config
    assert seen[-1].model.model == (model or "dgt-plus")
    assert seen[-1].explicit == frozenset({*chosen, *given})


def test_a_file_without_a_model_is_for_the_default_model(graph: Path, tmp_path: Path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "dgt.runs.many.train_runs", lambda data, config, out, **_: seen.append(config)
    )
    monkeypatch.setattr("dgt.cli.train.show_metrics", lambda *_: None)
    file = tmp_path / "settings.toml"
    file.write_text("[train]\nlr = 0.5\n")
    tokens = ["train", str(graph), "--out=x", "--config", str(file)]
    assert main(tokens) == 0
    assert seen[-1] == Config.of("dgt-plus").replace(lr=0.5)
    assert main([*tokens, "--model", "dgt"]) == 0
    assert seen[-1] == Config.of("dgt").replace(lr=0.5)


def test_flags_take_precedence_over_the_file_and_the_file_over_defaults(
    graph: Path, tmp_path: Path, monkeypatch
):
    seen = []
    monkeypatch.setattr(
        "dgt.runs.many.train_runs", lambda data, config, out, **_: seen.append(config)
    )
    monkeypatch.setattr("dgt.cli.train.show_metrics", lambda *_: None)
    file = tmp_path / "settings.toml"
    # Neither the file nor the flag alone is valid with the default of 64 channels.
    file.write_text(
        "[model]\nheads = 5\ndropout = 0\nnormalize = false\n"
        '[sequences]\ncriteria = ["bfs", "ppr"]\n'
    )
    tokens = ["train", str(graph), "--config", str(file)]
    assert main([*tokens, "--hidden-channels", "50", "--dropout", "0.25"]) == 0
    assert seen[-1] == Config().replace(
        heads=5, hidden_channels=50, dropout=0.25, normalize=False, criteria=("bfs", "ppr")
    )
    assert main([*tokens, "--hidden-channels=50", "--normalize", "--criteria", "similarity"]) == 0
    assert seen[-1].model.normalize is True
    assert seen[-1].criteria == ("similarity",)
    # The config.toml of a run is a settings file, too.
    whole = tmp_path / "config.toml"
    config = Config().replace(lr=0.5, split=3, criteria=["ppr"], model="dgt-light")
    whole.write_text('graph = "x"\nruns = 4\n' + config.to_toml())
    assert main(["train", str(graph), "--config", str(whole)]) == 0
    assert seen[-1] == config


def test_a_preset_is_that_of_the_graph_and_the_model(tmp_path: Path, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr("dgt.data.load", lambda *_: None)
    monkeypatch.setattr(
        "dgt.runs.many.train_runs", lambda data, config, out, **_: seen.append(config)
    )
    monkeypatch.setattr("dgt.cli.train.show_metrics", lambda *_: None)
    files = {"chameleon-dgt-plus": "[encoding]\nkatz_order = 1\n"}
    files["chameleon-dgt-light"] = "[model]\nmodel = 'dgt-light'\n[train]\nlr = 0.1\n"
    for name, text in files.items():
        (tmp_path / f"{name}.toml").write_text(text)
    found = {name: tmp_path / f"{name}.toml" for name in files}
    monkeypatch.setattr("dgt.config.preset.presets", lambda: found)
    tokens = ["train", "chameleon", "--preset"]
    assert main([*tokens, "--heads", "2"]) == 0
    assert seen[-1] == Config().replace(katz_order=1, heads=2)
    assert main([*tokens, "--model", "dgt-light"]) == 0
    assert seen[-1] == Config().replace(model="dgt-light", lr=0.1)
    # A settings file takes precedence over the preset and may name the model.
    file = tmp_path / "settings.toml"
    file.write_text("[encoding]\nkatz_order = 3\n[model]\nheads = 2\n")
    assert main([*tokens, "--config", str(file)]) == 0
    assert seen[-1] == Config().replace(katz_order=3, heads=2)
    file.write_text("[model]\nmodel = 'dgt-light'\n[train]\nepochs = 7\n")
    assert main([*tokens, "--config", str(file)]) == 0
    assert seen[-1] == Config().replace(model="dgt-light", lr=0.1, epochs=7)
    count = len(seen)
    has = "has presets for chameleon"
    refused(capsys, ["train", "cora", "--preset"], "none for dgt-plus on cora", f"dgt-plus {has}")
    refused(capsys, ["train", tmp_path, "--preset", "--model=dgt-light"], str(tmp_path), has)
    refused(capsys, ["train", "--preset"], "GRAPH")
    # A benchmark with presets for other models only.
    del found["chameleon-dgt-plus"]
    found["chameleon-filtered-gcn"] = found["chameleon-dgt-light"]
    error = refused(capsys, tokens, "none for dgt-plus on chameleon", "leave out --preset")
    assert "--model dgt-light: dgt-light\n" in error
    assert len(seen) == count


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("[model]\nhaeds = 3", ["[model]", "'haeds'", "'heads'"]),
        ("[modle]\nheads = 3", ["[modle]", "'model'"]),
        ("[model]\nlr = 3", ["'lr'", "belongs to [train]"]),
        ("heads = 3", ["heads"]),
        ("[model]\nheads = 'four'", ["[model] heads", "expected int", "'four'"]),
        ("[model]\nheads = true", ["[model] heads", "expected int", "True"]),
        ("[model]\nmodel = 'gnc'", ["'gnc'", "'gcn'"]),
        ("[train]\nlr = nan", ["lr", "nan"]),
        ("[model", ["not a TOML file"]),
    ],
)
def test_a_mistake_in_the_settings_file(
    graph: Path, tmp_path: Path, capsys, text: str, parts: list[str]
):
    file = tmp_path / "settings.toml"
    file.write_text(text)
    refused(capsys, ["train", graph, "--out", tmp_path / "run", "--config", file], *parts)
    assert [p.name for p in tmp_path.iterdir()] == ["settings.toml"]


@pytest.mark.parametrize(
    ("tokens", "parts"),
    [
        (["--haeds", "3"], ["--haeds", "--heads"]),
        (["--heads", "3"], ["hidden_channels", "64", "multiple of heads (3)"]),
        (["--heads", "x"], ["--heads", "x", "int"]),
        (["--heads"], ["--heads"]),
        (["--lr", "0"], ["lr", "0.0", "above 0"]),
        (["--lr", "inf"], ["lr", "inf"]),
        (["--model", "dgt-lite"], ["model", "'dgt-lite'", "'dgt-light'"]),
        (["--criteria", "bsf"], ["'bsf'", "'bfs'"]),
        (["--model=dgt-light", "--criteria", "bfs", "ppr"], ["one criterion", "bfs, ppr"]),
        (["--model=dgt", "--labels=read"], ["labels: got 'read', which only dgt-plus can use"]),
        (["--preset"], ["preset", "none for dgt-plus on", "chameleon"]),
        (["--config", "none.toml"], ["none.toml", "no such file"]),
        (["--runs", "0"], ["--runs", "0", "at least 1"]),
        (["--threads", "0"], ["--threads", "0", "at least 1"]),
        (["--threads", "100000"], ["--threads", "100000", "at most 1024"]),
        (["--runs", "100000000"], ["--runs", "100000000", "at most 10000"]),
        (["--blocks", "100000000"], ["blocks: got 100000000", "at most 1000"]),
        (["--katz-order", "1000000000000"], ["katz_order: got 1000000000000", "at most 100"]),
        (["--length", "10000000"], ["length: got 10000000", "at most 100000"]),
        (["--keys", "1000000000"], ["keys: got 1000000000", "at most 1024"]),
        (["--epochs", "1.5"], ["--epochs: expected an integer, got '1.5'"]),
        (["--seed", "1.5"], ["--seed: expected an integer, got '1.5'"]),
        (["--seed", "2.0"], ["--seed: expected an integer, got '2.0'"]),
        (["--runs", "2.5"], ["--runs: expected an integer, got '2.5'"]),
        (["--anchors=2.5"], ["--anchors: expected an integer, got '2.5'"]),
        (["--seed", "1e3"], ["--seed", "1e3"]),
        (["--splits", "published"], ["published"]),
        (["--resume", "--overwrite"], ["--resume and --overwrite", "mutually exclusive"]),
        (["another"], ["another"]),
    ],
)
def test_a_mistake_in_the_flags(
    graph: Path, tmp_path: Path, capsys, tokens: list[str], parts: list[str]
):
    refused(capsys, ["train", graph, "--out", tmp_path / "run", *tokens], *parts)
    assert not any(tmp_path.iterdir())


def test_unknown_names_come_with_the_nearest(capsys, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(capsys, ["train", "chamelion"], "chamelion", "'chameleon'")
    refused(capsys, ["info", "coora"], "coora", "'cora'")
    refused(capsys, ["tarin", "cora"], "tarin", "train")
    refused(capsys, ["train"], "GRAPH")
    refused(capsys, ["train", "cora", "--resume"], "--resume", "--out")
    assert not any(tmp_path.iterdir())


def test_a_folder_that_is_not_empty_is_left_alone(graph: Path, run: Path, tmp_path: Path, capsys):
    before = contents(run)
    refused(capsys, ["train", graph, "--out", run, *flags()], str(run), "not empty", "overwrite")
    assert contents(run) == before

    (tmp_path / "thesis.txt").write_text("ten years of work")
    refused(capsys, ["train", graph, "--out", tmp_path, "--overwrite"], "no config.toml")
    (tmp_path / "config.toml").write_text("[server]\nport = 80\n")
    refused(capsys, ["train", graph, "--out", tmp_path, "--overwrite"], "[server]")
    refused(capsys, ["train", graph, "--out", tmp_path / "thesis.txt"], "is a file")
    refused(capsys, ["train", graph, "--out", tmp_path / "thesis.txt" / "x"], "thesis.txt")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["config.toml", "thesis.txt"]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write to")
def test_a_folder_that_cannot_be_made(graph: Path, capsys):
    refused(capsys, ["train", graph, "--out", "/proc/run"], "/proc/run", "cannot write here")


def test_overwrite_replaces_a_run_and_nothing_else(graph: Path, tmp_path: Path, capsys):
    out = tmp_path / "run"
    tokens = ["train", str(graph), "--out", str(out), "--quiet"]
    assert main([*tokens, *flags(epochs=2), "--runs", "2"]) == 0
    (out / "notes.txt").write_text("mine")
    (out / "run-01" / "notes.txt").write_text("mine too")
    before = contents(out)
    (tmp_path / "bad.toml").write_text("[model]\nheads = 0\n")
    refused(capsys, [*tokens, "--overwrite", "--config", tmp_path / "bad.toml"], "heads")
    refused(capsys, ["train", "coora", "--out", out, "--overwrite"], "coora")
    assert contents(out) == before
    assert main([*tokens, *flags(epochs=3), "--overwrite"]) == 0
    assert json.loads((out / "metrics.json").read_text())["epochs"] == 3
    assert sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()) == [
        "config.toml", "metrics.json", "metrics.jsonl", "model.safetensors", "notes.txt",
        "predictions.parquet", "run-01/notes.txt",
    ]  # fmt: skip


def test_a_run_can_be_loaded_in_python(run: Path, graph: Path):
    from dgt.data.files import read

    classifier = NodeClassifier.load(run)
    metrics = json.loads((run / "metrics.json").read_text())
    assert classifier.metrics_ == metrics
    assert classifier.score(read(graph)) == metrics["test_accuracy"]


def dgt(*tokens: str | Path, **keywords) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dgt", *map(str, tokens)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **keywords)


def test_help_and_version_answer_without_torch():
    code = (
        "import sys; from dgt.cli import main; main(['--help']); main(['--version']);"
        "commands = 'train', 'prepare', 'predict', 'explain', 'info', 'tune', 'reproduce';"
        "[main([command, '--help']) for command in commands];"
        "heavy = 'torch', 'numba', 'scipy', 'pyarrow', 'optuna', 'matplotlib';"
        "print([name for name in heavy if name in sys.modules], file=sys.stderr)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (shown.returncode, shown.stderr) == (0, "[]\n")


def test_as_a_module(graph: Path, tmp_path: Path):
    shown = dgt("--version")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.strip() == __import__("dgt").__version__
    failed = dgt("train", graph / "nodes.csv", "--out", tmp_path / "run")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith("error: ")
    assert "Traceback" not in failed.stderr
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="pipes")
@pytest.mark.parametrize("tokens", [[], ["--json"]])
def test_a_reader_that_has_left(graph: Path, tokens: list[str]):
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "dgt", "info", str(graph), *tokens]
    try:
        shown = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, timeout=120)
    finally:
        os.close(write)
    assert shown.stderr == b""
    assert shown.returncode != 0


def test_data_of_pyg_that_runs_code_is_refused(tmp_path: Path, capsys):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "hacked"),)

    data = Data(x=torch.zeros(3, 1), edge_index=torch.zeros(2, 1, dtype=torch.int64))
    data.evil = Evil()
    torch.save(data, tmp_path / "graph.pt")
    refused(capsys, ["train", tmp_path / "graph.pt", "--out", tmp_path / "run"], "graph.pt")
    assert [p.name for p in tmp_path.iterdir()] == ["graph.pt"]


def test_presets_hold_settings_that_exist_for_the_graph_and_model_of_their_name():
    folder = Path(config.__file__).parent / "presets"
    assert sorted(presets().values()) == sorted(folder.iterdir())
    known = {f"{graph}-{model}": model for graph in NAMES for model in MODELS}
    for name, path in presets().items():
        assert Config.from_dict(read_toml(path), str(path)).model.model == known[name]
