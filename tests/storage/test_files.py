import os
import stat
from pathlib import Path

import pytest

from dgt.errors import InputError
from dgt.storage.files import cache_folder, write_atomically, write_text


def test_writes_text_and_makes_folders(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "note.txt"
    write_text(path, "één\n")
    write_text(path, "twee\n")
    assert path.read_bytes() == b"twee\n"
    assert os.listdir(path.parent) == ["note.txt"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "model.npz"
    path.write_text("old")

    def fail(beside: Path) -> None:
        beside.write_text("half")
        assert beside.parent == tmp_path
        assert beside.suffix == ".npz"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["model.npz"]


def test_the_old_content_is_there_until_the_new_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write(beside: Path) -> None:
        beside.write_text("new")
        assert path.read_text() == "old"

    write_atomically(path, write)
    assert path.read_text() == "new"


def test_files_get_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_text(tmp_path / "ours", "")
    modes = [stat.S_IMODE((tmp_path / n).stat().st_mode) for n in ("plain", "ours")]
    assert modes[0] == modes[1]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "new"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a regular file"):
        write_text(tmp_path, "x")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file.inside: cannot write"):
        write_text(tmp_path / "file" / "inside", "x")


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("DGT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr("sys.platform", "linux")
    assert cache_folder() == tmp_path / "xdg" / "dgt"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == Path.home() / ".cache" / "dgt"
