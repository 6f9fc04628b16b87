"""Fixtures that several test files share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The folder with the benchmarks' raw files; tests that need it are skipped without it."""
    folder = os.environ.get("DGT_DATA")
    if not folder:
        pytest.skip("needs the benchmark data: set DGT_DATA to its folder")
    path = Path(folder)
    if not path.is_dir():
        pytest.fail(f"DGT_DATA is {folder!r}, which is not a folder")
    return path
