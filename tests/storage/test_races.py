"""Several processes that claim the same folder or file at once: exactly one succeeds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.storage.races import PROCESSES

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
# The first three need no torch and are quick.
ROUNDS = {"claims": 40, "turns": 40, "files": 40}
ROUNDS_WITH_TORCH = {"runs": 40, "resumes": 10, "overwrites": 10, "names": 10, "searches": 10}

Results = dict[str, list[list[str]]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("races")


@pytest.fixture(scope="module")
def results(folder: Path) -> Results:
    found: Results = {}
    for group in (ROUNDS, ROUNDS_WITH_TORCH):
        given = [f"{kind}={count}" for kind, count in group.items()]
        done = subprocess.run(
            [sys.executable, "-m", "tests.storage.races", str(folder), *given],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        for line in done.stdout.splitlines():
            kind, outcome = json.loads(line)
            found.setdefault(kind, []).append(outcome)
    assert {kind: len(each) for kind, each in found.items()} == ROUNDS | ROUNDS_WITH_TORCH
    return found


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("claims", "busy"),
        ("files", "exists"),
        ("runs", "another process is training in this folder"),
        ("resumes", "another process is training in this folder"),
        ("overwrites", "another process is training in this folder"),
        ("searches", "another search is running in this folder"),
    ],
)
def test_exactly_one_wins(kind: str, reason: str, results: Results, folder: Path) -> None:
    for each in results[kind]:
        assert each.count("won") == 1, each
        lost = [one for one in each if one != "won"]
        assert all(one.startswith("refused: ") and reason in one for one in lost), each
    assert not [*folder.rglob("*.part*"), *folder.rglob(".lock")]


def test_there_are_never_two_owners(results: Results, folder: Path) -> None:
    assert all(each == ["won"] * PROCESSES for each in results["turns"])
    assert not [path for path in (folder / "turns").rglob("*") if path.is_file()]


def test_default_names_differ(results: Results) -> None:
    for each in results["names"]:
        assert sorted(each) == [f"cora-{n}" for n in range(1, PROCESSES + 1)]
