"""Files of runs that contain anything: one clear error that names the file and the key."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dgt import InputError, NodeClassifier
from dgt.cli import main
from dgt.runs.files import read_metrics
from dgt.storage.tensors import read_tensors, write_tensors
from dgt.training import loop
from tests.small import block_graph, flags, write_folder

DEEP = "[" * 100_000 + "]" * 100_000
SETTINGS = ["--model=mlp", *flags(epochs=3)]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("graphs") / "colors", block_graph())


@pytest.fixture(scope="module")
def complete(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("complete") / "run"
    assert main(["train", str(graph), "--out", str(out), "--quiet", *SETTINGS]) == 0
    return out


@pytest.fixture(scope="module")
def begun(graph: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after its first checkpoint."""
    out = tmp_path_factory.mktemp("begun") / "run"
    save = loop.checkpoint.save

    def stop(*given: Any) -> None:
        save(*given)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "CHECKPOINT_SECONDS", 0)
        patch.setattr(loop.checkpoint, "save", stop)
        assert main(["train", str(graph), "--out", str(out), "--quiet", *SETTINGS]) == 130
    return out


@pytest.fixture
def run(complete: Path, tmp_path: Path) -> Path:
    return shutil.copytree(complete, tmp_path / "run")


def refusal(capsys: pytest.CaptureFixture[str], tokens: list[Any]) -> str:
    """Returns the one line that a command is refused with."""
    assert main([str(token) for token in tokens]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert len(lines[0]) < 700
    return lines[0]


TEXTS = [
    (b"", "not"),
    (b"[", "not"),
    (b"\x00", "not"),
    (b"\xff\xfe{}", "not UTF-8 text"),
    (DEEP.encode(), "nested too deeply"),
]


@pytest.mark.parametrize(
    ("text", "words"), [(b"{}", "has no 'graph'"), (b"[]", "a JSON object"), *TEXTS]
)
def test_texts_in_place_of_metrics(run: Path, graph: Path, capsys, text: bytes, words: str):
    (run / "metrics.json").write_bytes(text)
    for command in (
        ["train", graph, "--out", run, "--resume", *SETTINGS],
        ["predict", run, "--out", run.parent / "p.csv"],
    ):
        line = refusal(capsys, command)
        assert f"{run / 'metrics.json'}: " in line
        assert words in line
    assert not (run.parent / "p.csv").exists()


@pytest.mark.parametrize("text", [text for text, _ in TEXTS if text])
def test_texts_in_place_of_settings(run: Path, graph: Path, capsys, text: bytes):
    (run / "config.toml").write_bytes(b"x = " + text)
    for command in (
        ["train", graph, "--out", run, "--resume"],
        ["train", graph, "--out", run, "--overwrite"],
        ["train", graph, "--config", run / "config.toml"],
        ["predict", run, "--out", run.parent / "p.csv"],
    ):
        assert f"{run / 'config.toml'}: " in refusal(capsys, command)


WRONG: dict[str, list[Any]] = {
    "graph": [None, True, 1, [], {}],
    "metric": [None, 1, [], "speed"],
    "best_epoch": [None, True, 1.5, "1", [1]],
    "seconds": [None, True, "1", 10**400],
    "split": [True, 1.5, "1"],
    "test": [None, 1, [], {}, {"accuracy": None}, {"accuracy": "high"}, {"accuracy": 10**400}],
    "versions": [None, {"dgt": 1}],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, each in WRONG.items() for v in each])
def test_metrics_of_other_types(run: Path, name: str, value: Any):
    path = run / "metrics.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(InputError, match=f"{path}: {name}: ") as error:
        read_metrics(run)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_metrics_that_are_no_numbers(run: Path, number: str):
    path = run / "metrics.json"
    text = path.read_text()
    path.write_text(text.replace('"seconds": ', f'"seconds": {number}, "old": '))
    with pytest.raises(InputError, match=r"metrics\.json: "):
        read_metrics(run)


def test_metrics_of_version_0_1(run: Path):
    path = run / "metrics.json"
    metrics = json.loads(path.read_text())
    for name in ("metric", "device", "train", "val", "test"):
        del metrics[name]
    path.write_text(json.dumps(metrics))
    assert read_metrics(run)["test"] == {"accuracy": metrics["test_accuracy"]}


def change(path: Path, key: str, edit: Callable[[Any], Any]) -> None:
    """Changes the metadata of a file, and writes a digest that fits."""
    tensors, metadata = read_tensors(path)
    values = edit(json.loads(metadata[key]))
    write_tensors(path, tensors, {key: values if isinstance(values, str) else json.dumps(values)})


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"in_channels": 10**12}, "in_channels: got 1000000000000, expected at most the number"),
        ({"in_channels": 0}, "in_channels: got 0"),
        ({"in_channels": "12"}, "in_channels: expected int, got '12'"),
        ({"in_channels": True}, "in_channels: expected int, got True"),
        ({"class_names": ["a", "a", "b"]}, "class_names: got list, expected distinct names"),
        ({"class_names": []}, "class_names: got list, expected distinct names"),
        ({"class_names": [1, 2, 3]}, "class_names: 0: expected str, got 1"),
        ({"class_names": {}}, "class_names: expected list"),
        ({"classes": [0, 1]}, "classes: got list, expected 3 integers"),
        ({"classes": [0, 1, 2**63]}, "classes: got list, expected 3 integers"),
        ({"feature_names": ["one"]}, "feature_names: got list, expected 12 names"),
        ({"feature_names": 3}, "feature_names: expected"),
        ({"anchors": [[]]}, "anchors: 0: expected"),
        ({"encoding_channels": -1}, "encoding_channels: got -1"),
        ({"num_nodes": 10**15}, "num_nodes: got 1000000000000000"),
        ({"format": "1"}, "format: expected int, got '1'"),
        ({"format": 99}, "has format 99"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_facts_of_a_model(run: Path, graph: Path, capsys, facts: dict[str, Any], words: str):
    change(run / "model.safetensors", "dgt", lambda before: before | facts)
    line = refusal(capsys, ["predict", run, "--out", run.parent / "p.csv"])
    assert str(run / "model.safetensors") in line
    assert words in line


@pytest.mark.parametrize("text", ["", "7", "[]", "{", DEEP, '{"a": NaN}', "\x00"])
def test_metadata_that_is_no_object(run: Path, begun: Path, tmp_path: Path, text: str):
    change(run / "model.safetensors", "dgt", lambda _: text)
    with pytest.raises(InputError, match=r"model\.safetensors: metadata: "):
        NodeClassifier.load(run)
    other = shutil.copytree(begun, tmp_path / "begun")
    change(other / "checkpoint.safetensors", "progress", lambda _: text)
    with pytest.raises(InputError, match=r"checkpoint\.safetensors: progress: "):
        resume(other)


def resume(run: Path) -> None:
    from dgt.data import load
    from dgt.runs.files import read_settings

    settings = read_settings(run)
    assert settings.graph is not None
    NodeClassifier(settings.config).fit(
        load(settings.graph), out=run, resume=True, graph=settings.graph
    )


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        ({"rows": 3}, "rows: expected"),
        ({"rows": []}, "best_epoch: got 1, expected a past epoch"),
        ({"rows": [{"epoch": 2}]}, "rows: expected the metrics of epoch 1"),
        ({"rows": [{"epoch": "1"}]}, "rows: 0: epoch: expected float, got '1'"),
        ({"best_epoch": 10**9}, "best_epoch: got 1000000000, expected a past epoch"),
        ({"best_value": None}, "best_value: expected float, got None"),
        ({"seconds": "long"}, "seconds: expected float, got 'long'"),
        ({"inputs": 7}, "inputs: expected str, got 7"),
        ({"inputs": "7"}, "the graph is not the one"),
        ({"more": 7}, "unknown key 'more'"),
    ],
)
def test_progress_of_a_checkpoint(
    begun: Path, tmp_path: Path, progress: dict[str, Any], words: str
):
    run = shutil.copytree(begun, tmp_path / "run")
    change(run / "checkpoint.safetensors", "progress", lambda before: before | progress)
    before = sorted(path.name for path in run.iterdir())
    with pytest.raises(InputError) as error:
        resume(run)
    assert words in str(error.value)
    assert "checkpoint.safetensors: " in str(error.value)
    assert sorted(path.name for path in run.iterdir()) == before


def no(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    return {key: value for key, value in tensors.items() if key != name}


def first(tensors: dict[str, Tensor], prefix: str) -> str:
    return next(name for name in sorted(tensors) if name.startswith(prefix))


EDITS: list[Callable[[Tensor], Tensor | None]] = [
    lambda value: None,
    lambda value: value.reshape(-1)[:1],
    lambda value: value.double() if value.is_floating_point() else value.short(),
    lambda value: value * torch.nan if value.is_floating_point() else torch.zeros_like(value),
    lambda value: value.to(torch.float8_e4m3fn) if value.is_floating_point() else value.bool(),
]


@pytest.mark.parametrize("prefix", ["model.", "average.", "best.", "adam.", "random"])
@pytest.mark.parametrize("edit", range(len(EDITS)))
def test_tensors_of_a_checkpoint(begun: Path, tmp_path: Path, prefix: str, edit: int):
    run = shutil.copytree(begun, tmp_path / "run")
    path = run / "checkpoint.safetensors"
    tensors, metadata = read_tensors(path)
    name = first(tensors, prefix)
    changed = EDITS[edit](tensors[name])
    rest = no(tensors, name) | ({} if changed is None else {name: changed})
    write_tensors(path, rest, metadata)
    with pytest.raises(InputError, match="checkpoint"):
        resume(run)


@pytest.mark.parametrize("edit", range(len(EDITS)))
def test_tensors_of_a_model(run: Path, edit: int):
    path = run / "model.safetensors"
    tensors, metadata = read_tensors(path)
    name = next(name for name in sorted(tensors) if not name.startswith("graph."))
    changed = EDITS[edit](tensors[name])
    write_tensors(path, no(tensors, name) | ({} if changed is None else {name: changed}), metadata)
    with pytest.raises(InputError, match=r"model\.safetensors: "):
        NodeClassifier.load(run)


def test_settings_of_a_far_larger_model(run: Path):
    """The weights are compared with the settings before memory is allocated for the model."""
    path = run / "config.toml"
    text = path.read_text().replace("hidden_channels = 16", "hidden_channels = 16384")
    path.write_text(text.replace("layers = 2", "layers = 500"))
    with pytest.raises(InputError, match=r"not the weights of the model in config\.toml"):
        NodeClassifier.load(run)


@pytest.mark.parametrize("size", [0, 1, 2**20, 2**33, 2**63, 2**64 - 1])
@pytest.mark.parametrize("body", [b"", b"{}", b"\xff" * 64, DEEP.encode()])
def test_headers_of_safetensors_files(run: Path, size: int, body: bytes):
    (run / "model.safetensors").write_bytes(size.to_bytes(8, "little") + body)
    with pytest.raises(InputError, match=r"model\.safetensors: ") as error:
        NodeClassifier.load(run)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "loop"])
@pytest.mark.parametrize(
    "name", ["config.toml", "metrics.json", "model.safetensors", "checkpoint.safetensors",
             "metrics.jsonl", "predictions.parquet"]
)  # fmt: skip
def test_other_things_in_place_of_files(
    run: Path, begun: Path, graph: Path, tmp_path: Path, capsys, name: str, kind: str
):
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    folder = shutil.copytree(begun, tmp_path / "begun")
    for each in (run, folder):
        path = each / name
        path.unlink(missing_ok=True)
        if kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to(mine if kind == "link" else name)
    for flag in ("--resume", "--overwrite"):
        line = refusal(capsys, ["train", graph, "--out", folder, flag, *SETTINGS])
        # With a link to any file as metrics.json, the run looks complete, but has no model.
        assert name in line or (name, kind) == ("metrics.json", "link")
    if name in ("config.toml", "model.safetensors"):
        assert name in refusal(capsys, ["predict", run, "--out", tmp_path / "p.csv"])
    assert mine.read_text() == "mine"
    assert not (folder / ".lock").exists()
