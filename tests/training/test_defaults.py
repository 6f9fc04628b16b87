"""Settings that follow from the sizes of a graph, and the note that says so."""

import json
from itertools import pairwise
from pathlib import Path

import pytest

from dgt import NodeClassifier
from dgt.cli import main
from dgt.runs.files import read_settings
from dgt.system.notes import NOTE, note_once
from tests.small import QUICK, block_graph, flags, write_folder

PLUS = {"model": "dgt-plus", "epochs": 1, "hidden_channels": 16}
# What the rule chooses with many features and few training nodes.
FEW_NODES = {"labels": "none", "average": 0.0, "select_by": "loss"}


@pytest.fixture(autouse=True)
def _note_again() -> None:
    note_once.cache_clear()


def test_a_note_names_the_settings_of_the_rule_that_are_not_defaults(tmp_path, caplog):
    graph = write_folder(tmp_path / "colors", block_graph())
    command = ["train", str(graph), "--model=dgt-plus", "--epochs=1", "--blocks=2", "--length=8"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    notes = [text for text in caplog.messages if text.startswith("dgt-plus chose")]
    assert len(notes) == 1
    words = notes[0].split()
    assert "90 nodes and 12 features" in notes[0]
    assert "--blocks" not in words  # set explicitly
    assert "--labels" not in words  # read is the default, too
    settings = read_settings(tmp_path / "run").config.flat()
    assert notes[0].endswith("--criteria neighbors ppr")
    for flag, value in pairwise(words):
        if flag.startswith("--") and flag != "--criteria":
            assert str(settings[flag[2:].replace("-", "_")]) == value


def test_no_note_if_nothing_differs(tmp_path, caplog):
    graph = write_folder(tmp_path / "colors", block_graph(features=70))
    assert main(["train", str(graph), "--out", str(tmp_path / "run"), "--quiet",
                 *flags(model="dgt-plus", epochs=1, **FEW_NODES)]) == 0  # fmt: skip
    assert "chose" not in caplog.text


@pytest.mark.parametrize(("features", "directed"), [(70, True), (12, True), (70, False)])
def test_a_note_names_the_criteria_that_follow_links(features, directed, tmp_path, caplog):
    graph = write_folder(tmp_path / "colors", block_graph(features=features))
    command = ["train", str(graph), "--quiet", *flags(epochs=1, **FEW_NODES)]
    command += ["--directed"] if directed else []
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    notes = [text for text in caplog.messages if text.startswith("dgt-plus chose")]
    assert len(notes) == directed
    if directed:
        assert f"90 nodes, {features} features and directed edges: " in notes[0]
        used = read_settings(tmp_path / "run").config.criteria
        assert notes[0].endswith(f"--criteria {' '.join(used)}")
        assert "alike-out" in used
        again = [*command, "--criteria", *used, "--out", str(tmp_path / "again")]
        note_once.cache_clear()
        assert main(again) == 0
        assert caplog.text.count("--criteria") == 1  # set explicitly


@pytest.mark.parametrize("name", ["chunk_size", "batch_size"])
def test_the_rule_chooses_no_batch_norm_if_nodes_are_processed_in_parts(name, caplog):
    caplog.set_level(NOTE, "dgt")
    whole = NodeClassifier(**PLUS).fit(block_graph())
    assert whole.config_.model.norm == "batch"
    assert "keeps" not in caplog.text
    parts = NodeClassifier(**PLUS, **{name: 30}).fit(block_graph())
    assert parts.config_.model.norm == "layer"
    assert parts.config_.model.gamma == whole.config_.model.gamma == 64
    note = [text for text in caplog.messages if "chose" in text][-1]
    assert "--norm batch" not in note.split(";")[0]
    assert note.endswith(
        "; it keeps --norm layer, since --norm batch, its choice otherwise, needs all nodes at once"
    )
    NodeClassifier(**PLUS, norm="none", **{name: 30}).fit(block_graph())
    assert "keeps" not in [text for text in caplog.messages if "chose" in text][-1]


def test_prepared_sequences_are_those_of_training(tmp_path: Path, monkeypatch, capsys):
    """The rule chooses criteria for this graph."""
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "cache"))
    graph = write_folder(tmp_path / "colors", block_graph())
    assert main(["prepare", str(graph), "--model=dgt-plus", "--json", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out)["made"] == 2
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.npy")}
    command = ["train", str(graph), "--model=dgt-plus", "--epochs=1", "--quiet"]
    assert main([*command, "--out", str(tmp_path / "run")]) == 0
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.npy")}
    assert after == before


def test_other_models_follow_no_rule():
    model = NodeClassifier(model="dgt", **QUICK).fit(block_graph())
    assert model.config_ == model.config
