"""A run owns its folder while it trains, and leaves nothing behind if it fails at once."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from dgt import InputError, NodeClassifier
from dgt.cli import main
from dgt.config import Config
from dgt.runs.files import Settings, read_settings
from dgt.runs.folder import RunFolder
from dgt.sequences import CRITERIA
from dgt.storage.claims import LOCK, Claim
from dgt.training import loop
from tests.small import QUICK, block_graph, flags, write_folder

SHORT = QUICK | {"epochs": 4, "model": "mlp"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("graphs") / "colors", block_graph())


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("when", [2, 3, 4])
@pytest.mark.parametrize("how", ["removed", "replaced", "emptied"])
def test_a_folder_that_is_lost_while_training(
    graph: Path, tmp_path: Path, monkeypatch, capsys, when: int, how: str
):
    out, epoch = tmp_path / "run", loop._epoch
    left = when

    def epoch_and_loss(*given):
        nonlocal left
        left -= 1
        if left == 0:
            shutil.rmtree(out)
            if how == "replaced":
                out.mkdir()
                (out / "thesis.txt").write_text("mine")
            elif how == "emptied":
                out.mkdir()
        return epoch(*given)

    monkeypatch.setattr(loop, "_epoch", epoch_and_loss)
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0)
    command = ["train", str(graph), "--out", str(out), "--quiet", "--model=mlp", *flags(epochs=4)]
    assert main(command) == 1
    error = capsys.readouterr().err
    assert error == f"error: {out}: the folder was removed or replaced by another program\n"
    assert (content(out) if out.exists() else {}) == (
        {"thesis.txt": b"mine"} if how == "replaced" else {}
    )


@pytest.mark.parametrize("name", ["config.toml", "metrics.jsonl", LOCK])
def test_a_file_that_is_lost_while_training(tmp_path: Path, monkeypatch, name: str):
    epoch = loop._epoch

    def epoch_and_loss(*given):
        (tmp_path / "run" / name).unlink(missing_ok=True)
        return epoch(*given)

    monkeypatch.setattr(loop, "_epoch", epoch_and_loss)
    with pytest.raises(OSError, match="removed"):
        NodeClassifier(**SHORT).fit(block_graph(), out=tmp_path / "run")
    assert not (tmp_path / "run" / "metrics.json").exists()


def fail(data: Data, length: int) -> torch.Tensor:
    raise InputError("not today")


@pytest.mark.parametrize("runs", [1, 2])
@pytest.mark.parametrize("existed", [True, False])
@pytest.mark.parametrize("cause", ["criterion", "loss", "model"])
def test_a_run_that_fails_at_once_leaves_nothing(
    graph: Path, tmp_path: Path, monkeypatch, capsys, cause: str, existed: bool, runs: int
):
    out = tmp_path / "runs" / "run"
    if existed:
        out.mkdir(parents=True)
    command = [
        "train",
        str(graph),
        "--out",
        str(out),
        "--quiet",
        f"--runs={runs}",
        *flags(epochs=2),
    ]
    with monkeypatch.context() as patch:
        if cause == "criterion":
            patch.setitem(CRITERIA._entries, "failing", fail)
            assert main([*command, "--criteria=failing"]) == 2
        elif cause == "loss":
            patch.setattr(loop, "_epoch", lambda *_: (float("nan"), 0.0))
            assert main(command) == 2
        else:
            patch.setattr("dgt.estimator.model.build", fail)
            assert main(command) == 70
    capsys.readouterr()
    assert out.exists() == existed
    assert not any(tmp_path.iterdir()) or existed
    assert main([*command, "--model=mlp"]) == 0
    assert main([*command, "--model=mlp"]) == 2


def test_a_failing_run_does_not_replace_another(tmp_path: Path):
    NodeClassifier(**SHORT).fit(block_graph(), out=tmp_path)
    before = content(tmp_path)
    own = NodeClassifier(criteria=[fail], **QUICK)
    with pytest.raises(InputError, match="not today"):
        own.fit(block_graph(), out=tmp_path, overwrite=True)
    assert content(tmp_path) == before


def test_runs_with_unknown_functions_can_be_overwritten(tmp_path: Path):
    NodeClassifier(**SHORT).fit(block_graph(), out=tmp_path)
    path = tmp_path / "config.toml"
    path.write_text(path.read_text().replace("[sequences]", '[sequences]\ncriteria = ["gone"]'))
    with pytest.raises(InputError, match="unknown criterion 'gone'"):
        NodeClassifier(**SHORT).fit(block_graph(), out=tmp_path, resume=True)
    NodeClassifier(**SHORT).fit(block_graph(), out=tmp_path, overwrite=True)
    assert read_settings(tmp_path).config == NodeClassifier(**SHORT).config


def test_a_run_in_progress_is_not_touched(tmp_path: Path):
    settings = Settings(Config.of("dgt"))
    with RunFolder(tmp_path) as run:
        run.claim(settings)
        for how in ({}, {"resume": True}, {"overwrite": True}):
            with (
                RunFolder(tmp_path) as other,
                pytest.raises(InputError, match="another process is training in this folder"),
            ):
                other.claim(settings, **how)
        run.begin()
        fitted = NodeClassifier(**SHORT).fit(block_graph())
        with pytest.raises(InputError, match="another process is training"):
            fitted.save(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


def test_a_lock_that_a_killed_process_left_is_harmless(tmp_path: Path):
    (tmp_path / LOCK).touch()
    NodeClassifier(**SHORT).fit(block_graph(), out=tmp_path)
    assert not (tmp_path / LOCK).exists()
    (tmp_path / LOCK).symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="cannot write here"):
        Claim(tmp_path, "busy")


def test_resume_on_the_same_device_by_another_name(graph: Path, tmp_path: Path, capsys):
    command = ["train", str(graph), "--out", str(tmp_path / "run"), "--model=mlp", *flags(epochs=3)]
    assert main([*command, "--device=cpu", "--quiet"]) == 0
    if not torch.cuda.is_available() and not torch.backends.mps.is_available():
        assert main([*command, "--resume", "--device=auto"]) == 0
    assert main([*command, "--resume", "--device=cuda:7"]) == 2
    assert "device" in capsys.readouterr().err
    assert read_settings(tmp_path / "run").config.train.device == "cpu"


def test_default_names_leave_no_empty_folder(graph: Path, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", str(graph), "--epochs=3", "--splits=published"]) == 2
    assert not (tmp_path / "runs").exists()
    for n in (1, 2):
        assert (
            main(["train", str(graph), "--quiet", "--model=mlp", "--json", *flags(epochs=2)]) == 0
        )
        assert json.loads((tmp_path / f"runs/colors-{n}/metrics.json").read_text())["epochs"] == 2


def test_several_runs_after_a_kill_between_two_files(graph: Path, tmp_path: Path, monkeypatch):
    """A killed process may leave the folder of a run without settings; the next one is refused."""
    out = tmp_path / "run"
    command = ["train", str(graph), "--out", str(out), "--quiet", "--resume", "--runs=2"]
    command += ["--model=mlp", *flags(epochs=2)]
    with monkeypatch.context() as patch:
        patch.setattr(loop, "_epoch", lambda *_: (float("nan"), 0.0))
        settings = Settings(Config.of("mlp").replace(**QUICK | {"epochs": 2}), str(graph), 2)
        RunFolder(out).write_settings(settings)
        (out / "run-00").mkdir()
        (out / "run-00" / LOCK).touch()
        assert main(command) == 2
    assert list(out.iterdir()) == []
    assert main(command) == 0
