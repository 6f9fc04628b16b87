"""Fixtures that several test files share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.axe import violations  # noqa: F401
from tests.browser import browser, open_tab  # noqa: F401

# Before anything loads torch, as the command line does: keeps the tests fast on a busy machine.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


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


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keeps the tests out of the user's cache, and the user's cache out of the tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DGT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
