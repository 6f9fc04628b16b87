"""``tools/presets.py``, which searches the settings that are shipped as presets."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from dgt.config import Config, read_toml
from tests.tune.test_rungs import graph, train_by

__all__ = ["graph"]
PATH = Path(__file__).parents[2] / "tools" / "presets.py"


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("presets", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "home").mkdir()
    monkeypatch.setattr(module, "HOME", tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    return module


def run(tool: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.argv", ["presets.py", *arguments])
    tool.main()


def test_presets_are_written_and_searches_continue(tool, graph, tmp_path, monkeypatch, capsys):
    jobs = train_by(monkeypatch, lambda settings, split, epoch: settings["lr"])
    home, given = tmp_path / "home", ["--graphs", "cora", "--models", "gcn", "mlp"]
    given += ["--workers", "1", "--runs", "1", "--final-runs", "2", "--write"]
    run(tool, monkeypatch, *given, "--cpu-minutes", "40")
    assert {path.name for path in home.iterdir()} == {"cora-gcn.toml", "cora-mlp.toml"}
    text = (home / "cora-gcn.toml").read_text()
    assert text.startswith("# Validation accuracy ")
    assert "of dgt tune, with 40 minutes of CPU time." in " ".join(text.split("\n# "))
    found = Config.from_dict(read_toml(home / "cora-gcn.toml"))
    assert found.model.model == "gcn"
    assert found.train.lr > Config.of("gcn").train.lr
    assert found.train.seed == Config().train.seed
    assert "split" not in text
    assert "cora-gcn: Validation accuracy" in capsys.readouterr().out
    count = len(jobs)
    run(tool, monkeypatch, *given, "--cpu-minutes", "40")
    assert len(jobs) == count  # all of the time was used
    assert (home / "cora-gcn.toml").read_text() == text


def test_a_preset_that_is_no_better_than_the_defaults_is_removed(tool, tmp_path, monkeypatch):
    train_by(monkeypatch, lambda settings, split, epoch: 0.5)
    old = tmp_path / "home" / "cora-gcn.toml"
    old.write_text("# old\n")
    given = ["--graphs", "cora", "--models", "gcn", "--workers", "1", "--runs", "1"]
    run(tool, monkeypatch, *given, "--cpu-minutes", "40")
    assert old.exists()  # without --write
    run(tool, monkeypatch, *given, "--cpu-minutes", "40", "--write")
    assert not old.exists()


def test_comments_are_wrapped(tool):
    lines = tool.comment("word " * 50).splitlines()
    assert len(lines) == 3
    assert all(line.startswith("# word") and len(line) <= 100 for line in lines)
