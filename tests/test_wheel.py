"""The wheel works in an empty environment."""

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(
    not (ROOT / "constraints.txt").exists(), reason="needs the source folder"
)


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Removed after the tests, since the environment takes more than a gigabyte."""
    with tempfile.TemporaryDirectory(prefix="dgt-wheel-") as path:
        yield Path(path)


@pytest.fixture(scope="module")
def wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder]
    subprocess.run([*command, ROOT], check=True, stdout=subprocess.DEVNULL)
    (path,) = folder.glob("*.whl")
    return path


def test_it_contains_only_the_package(wheel: Path):
    names = zipfile.ZipFile(wheel).namelist()
    package = {name for name in names if not name.split("/")[0].endswith(".dist-info")}
    assert {name.split("/")[0] for name in package} == {"dgt"}
    assert {"dgt/py.typed", "dgt/data/cora.npz", "dgt/nn/model.py"} <= package
    assert not any("__pycache__" in name for name in names)


def test_in_an_empty_environment_it_trains_and_predicts(wheel: Path, folder: Path):
    venv.create(folder / "venv")
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DGT_"))}
    environment["DGT_CACHE"] = str(folder / "cache")

    def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            list(map(str, command)), cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done

    python = programs / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile"]
    run(*pip, "--constraint", ROOT / "constraints.txt", wheel)
    train = run(programs / "dgt", "train", "cora", "--epochs=30", "--out=run", "--json")
    metrics = json.loads(train.stdout)
    assert metrics["test_accuracy"] > 0.75
    assert "dgt" in metrics["versions"]
    run(python, "-m", "dgt", "predict", "run", "--out", "predictions.csv")
    assert len((folder / "predictions.csv").read_text().splitlines()) == 1 + 2708
