"""Caches where neither the package nor the home folder can be written."""

import ctypes
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import dgt
from dgt.storage.files import cache_folder
from dgt.system import folders
from tests.small import block_graph, write_folder

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1

# Trains, predicts and draws a figure in one process, since each import takes seconds.
SCRIPT = """
import sys
from pathlib import Path
import dgt.estimator, dgt.explain, dgt.sequences, dgt.encodings, dgt.baselines
from dgt.cli import main
graph, out = sys.argv[1:]
small = ["--model=mlp", "--epochs=2", "--quiet"]
assert main(["train", graph, "--out", f"{out}/run", *small]) == 0
assert main(["predict", f"{out}/run", "--out", f"{out}/p.csv", "--quiet"]) == 0
from dgt.report import plots
from matplotlib.figure import Figure
plots.save(Figure(), Path(f"{out}/figure.png"))
print(dgt.__file__)
"""


def without_override() -> None:
    """Makes file permissions hold for root, too."""
    if os.geteuid() == 0:
        assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE) == 0


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or (os.geteuid() == 0 and sys.platform != "linux"),
    reason="permissions do not hold for this user",
)
@pytest.mark.parametrize("home", ["unwritable", "unwritable/missing"])
def test_a_read_only_installation_without_a_home_folder(tmp_path: Path, home: str) -> None:
    graph = write_folder(tmp_path / "graph", block_graph())
    installed = tmp_path / "site"
    shutil.copytree(
        Path(dgt.__file__).parent, installed / "dgt", ignore=shutil.ignore_patterns("__pycache__")
    )
    (tmp_path / "unwritable").mkdir()
    read_only = [tmp_path / "unwritable", installed, *installed.rglob("*")]
    for path in read_only:
        path.chmod(path.stat().st_mode & ~0o222)
    for name in ("temporary", "out"):
        (tmp_path / name).mkdir()
    keep = {k: v for k, v in os.environ.items() if k in ("PATH", "OMP_NUM_THREADS")}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(graph), str(tmp_path / "out")],
        env=keep
        | {
            "PYTHONPATH": str(installed),
            "TMPDIR": str(tmp_path / "temporary"),
            "HOME": str(tmp_path / home),
        },
        cwd=tmp_path / "out",
        preexec_fn=without_override,
        capture_output=True,
        text=True,
        check=False,
    )
    for path in read_only:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    said = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert (done.returncode, said) == (0, [])
    assert done.stdout.splitlines()[-1] == str(installed / "dgt" / "__init__.py")
    assert not list(installed.rglob("__pycache__"))
    caches = tmp_path / "temporary" / f"dgt-{os.getuid()}"
    assert list((caches / "numba").rglob("*.nbc"))
    assert (tmp_path / "out" / "figure.png").is_file()


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder for temporary files of all users."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.delenv("DGT_CACHE")
    folders.temporary.cache_clear()
    yield tmp_path
    folders.temporary.cache_clear()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs user ids")
def test_temporary_folders_are_private(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = shared / f"dgt-{os.getuid()}"
    assert folders.temporary() == name
    assert stat.S_IMODE(name.stat().st_mode) == 0o700

    def other() -> bool:
        folders.temporary.cache_clear()
        found = folders.temporary()
        assert stat.S_IMODE(found.stat().st_mode) == 0o700
        return found != name

    assert not other()
    name.chmod(0o770)
    assert other()
    name.rmdir()
    name.symlink_to(shared)
    assert other()
    name.unlink()
    name.write_text("")
    assert other()
    name.unlink()
    name.mkdir(0o700)
    assert not other()
    # The folder has the name of this user, but belongs to another one.
    owner = os.getuid() + 1
    name = name.rename(shared / f"dgt-{owner}")
    monkeypatch.setattr(os, "getuid", lambda: owner)
    assert other()


def test_without_a_home_folder(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert cache_folder() == folders.temporary()
    for name in ("MPLCONFIGDIR", "NUMBA_CACHE_DIR"):
        monkeypatch.setenv(name, "")  # so that it is restored
        monkeypatch.delenv(name)
    (shared / "file").touch()
    monkeypatch.setattr(folders, "PACKAGE", shared / "file")
    import numba

    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    folders.use_writable_caches()
    assert os.environ["MPLCONFIGDIR"] == str(folders.temporary() / "matplotlib")
    assert os.environ["NUMBA_CACHE_DIR"] == str(folders.temporary() / "numba")
    assert os.environ["NUMBA_CACHE_DIR"] == numba.config.CACHE_DIR


def test_folders_of_the_user_are_kept(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "/mine")
    monkeypatch.setenv("MPLCONFIGDIR", "/own")
    folders.use_writable_caches()
    assert (os.environ["NUMBA_CACHE_DIR"], os.environ["MPLCONFIGDIR"]) == ("/mine", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "xdg"))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == shared / "xdg" / "dgt"
