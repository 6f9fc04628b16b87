"""``constraints.txt`` pins every package that is installed for the project."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parent.parent / "tools" / "pins.py"
spec: Any = importlib.util.spec_from_file_location("pins", PATH)
pins: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pins)


def test_every_dependency_is_pinned():
    lacking = pins.missing()
    assert not lacking, f"run make pins, or add to constraints.txt: {', '.join(lacking)}"


def test_indirect_dependencies_are_needed():
    names = pins.needed()
    assert {"torch", "numba", "pytest"} <= names.keys()  # direct
    assert {"llvmlite", "joblib", "pluggy"} <= names.keys()  # of numba, scikit-learn and pytest
    assert not {"pip", "setuptools", "deformable-graph-transformer"} & names.keys()
    assert "+" not in names["torch"]


def test_a_package_without_a_pin_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    text = pins.FILE.read_text()
    (tmp_path / "constraints.txt").write_text(text.replace("llvmlite==", "# llvmlite "))
    monkeypatch.setattr(pins, "FILE", tmp_path / "constraints.txt")
    (line,) = pins.missing()
    assert line.startswith("llvmlite==")


def test_the_command():
    done = subprocess.run(
        [sys.executable, str(PATH), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "")
