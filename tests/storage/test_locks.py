import subprocess
import sys
from pathlib import Path

import pytest

from dgt.storage import locks
from dgt.storage.locks import lock

TRY = """
import sys
from dgt.storage.locks import lock
with open(sys.argv[1], "ab") as file:
    print(lock(file, shared=sys.argv[2] == "shared", wait=False))
"""


def other(path: Path, kind: str) -> bool:
    """Whether another process gets the lock."""
    run = subprocess.run(
        [sys.executable, "-c", TRY, path, kind], check=True, capture_output=True, text=True
    )
    return run.stdout.strip() == "True"


def test_locks_last_until_the_file_is_closed(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "file"
    with open(path, "ab") as file:
        assert lock(file, shared=True)
        assert other(path, "shared")
        assert not other(path, "exclusive")
        assert lock(file)
        assert not other(path, "shared")
    assert other(path, "exclusive")


def test_without_locks_nothing_is_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    with open(tmp_path / "file", "ab") as one, open(tmp_path / "file", "ab") as two:
        assert lock(one, wait=False)
        assert lock(two, wait=False)
