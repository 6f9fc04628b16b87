"""Wrong inputs raise the same ValueError in all forms of an operator, or give the right result."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ops.cases import CASES
from tests.ops.wrong_calls import check_wrong_call


@pytest.mark.parametrize("name", sorted(CASES))
@given(seed=st.integers(0, 10**9))
@settings(max_examples=40, deadline=None)
def test_all_forms_agree(name: str, seed: int) -> None:
    check_wrong_call(name, seed)


def with_bounds_checking(calls: int, request: pytest.FixtureRequest) -> None:
    """Runs random calls in a process in which numba checks the bounds of every access."""
    # Compiled code is kept between test runs, apart from that without checks.
    cache = request.config.cache.mkdir("numba-boundscheck")
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(cache)}
    result = subprocess.run(
        [sys.executable, "-m", "tests.ops.wrong_calls", str(calls)],
        cwd=Path(__file__).parents[2],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("0 crashes") == len(CASES)


def test_with_bounds_checking(request: pytest.FixtureRequest) -> None:
    with_bounds_checking(20, request)


@pytest.mark.slow
def test_ten_thousand_calls_with_bounds_checking(request: pytest.FixtureRequest) -> None:
    with_bounds_checking(10_000, request)
