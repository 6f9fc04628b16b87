"""Follows the section "Extending" of docs/architecture.md in a copy of the package."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dgt
from tests.small import block_graph, flags, write_folder

PAGE = Path(__file__).parent.parent / "docs" / "architecture.md"

if not PAGE.is_file():
    pytest.skip("needs the source folder", allow_module_level=True)

BLOCK = re.compile(r"^```\w+ title=\"([^\"]+)\"\n(.*?)^```$", re.DOTALL | re.MULTILINE)
CHOICES = "src/dgt/config/choices.py"
BLOCKS = BLOCK.findall(PAGE.read_text())
FILES = {title: code for title, code in BLOCKS if title.startswith("src/") and ": " not in title}
LINES = {title.split(": ")[1]: code.strip() for title, code in BLOCKS if ": " in title}
KINDS = {
    "CRITERIA": "src/dgt/sequences/hubs.py",
    "ENCODINGS": "src/dgt/encodings/triangles.py",
    "MODELS": "src/dgt/baselines/linear.py",
    "METRICS": "src/dgt/top2.py",
}
SETTINGS = flags(dropout=0.0, input_dropout=0.0)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("graphs") / "colors", block_graph())


def run(root: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-m", "dgt", *words]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)


def test_the_page_has_every_extension():
    assert set(LINES) == set(KINDS)
    assert set(FILES) == set(KINDS.values())


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with one more file and one more line per extension."""
    root = tmp_path_factory.mktemp("extended")
    shutil.copytree(Path(dgt.__file__).parent, root / "src" / "dgt")
    for kind, path in KINDS.items():
        assert not (root / path).exists()
        (root / path).write_text(FILES[path])
        choices = root / CHOICES
        text = choices.read_text()
        start = text.index("{", text.index(f"\n{kind}: ")) + 1
        choices.write_text(f"{text[:start]}\n        {LINES[kind]}{text[start:]}")
    return root


def test_extensions_take_one_file_and_one_line_each(extended: Path, graph: Path, tmp_path: Path):
    choices = ["--criteria", "bfs", "hubs", "--encoding", "triangles", "--metric", "top2"]
    out = ["--out", str(tmp_path / "run"), "--json", "--quiet"]
    done = run(extended, "train", str(graph), *choices, *SETTINGS, *out)
    assert done.returncode == 0, done.stderr
    metrics = json.loads(done.stdout)
    assert metrics["test_accuracy"] > 0.5  # with three classes
    assert metrics["metric"] == "top2"
    assert 1 >= metrics["test"]["top2"] >= metrics["test_accuracy"]
    done = run(extended, "predict", str(tmp_path / "run"), "--out", str(tmp_path / "p.csv"))
    assert done.returncode == 0, done.stderr
    out = ["--out", str(tmp_path / "baseline"), "--json", "--quiet"]
    done = run(extended, "train", str(graph), "--model", "linear", *SETTINGS, *out)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["test_accuracy"] > 0.5


def test_the_command_line_knows_the_extensions(extended: Path, graph: Path):
    shown = run(extended, "train", "--help").stdout
    assert all(name in shown for name in ("hubs", "triangles", "linear", "top2"))
    done = run(extended, "train", str(graph), "--criteria", "hubz")
    assert done.returncode == 2
    assert "did you mean 'hubs'" in done.stderr


def test_a_module_of_the_users_own(graph: Path, tmp_path: Path):
    code = dict(BLOCKS)["my_extensions.py"]
    (tmp_path / "my_extensions.py").write_text(code)
    root = Path(dgt.__file__).parents[2]
    words = ["--import", "my_extensions"]
    train = ["train", str(graph), "--criteria", "bfs", "by-degree", *SETTINGS, "--out", "run"]
    done = run(root, *train, *words, "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    predict = ["predict", "run", "--out", "p.csv"]
    done = run(root, *predict, cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown criterion 'by-degree'" in done.stderr
    assert "--import" in done.stderr
    done = run(root, *predict, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
