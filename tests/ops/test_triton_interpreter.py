"""Runs the tests of ``interpreted.py`` and ``interpreted_sums.py`` with Triton's interpreter."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Triton needs Linux")


def interpret(select: str, **environment: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    result = subprocess.run(
        [*command, "tests/ops/interpreted.py", "tests/ops/interpreted_sums.py", "-k", select],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TRITON_INTERPRET": "1", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "skipped" not in result.stdout


def test_random_cases() -> None:
    interpret("values_and_gradients or half_precision")


def test_the_rest() -> None:
    interpret("not (values_and_gradients or half_precision)")


@pytest.mark.slow
def test_six_hundred_random_cases(tmp_path: Path) -> None:
    interpret("values_and_gradients", DGT_TRITON_CASES="300", DGT_TRITON_FIGURES=str(tmp_path))
    figures = {path.stem: json.loads(path.read_text()) for path in tmp_path.iterdir()}
    print(json.dumps(figures, indent=2))
    assert len(figures) == 2
    assert sum(figure["cases"] for figure in figures.values()) >= 500
