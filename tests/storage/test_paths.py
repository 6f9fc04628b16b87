"""Paths given in Python."""

from pathlib import Path

import pytest

from dgt.errors import InputError
from dgt.storage.paths import as_path


@pytest.mark.parametrize("value", ["runs/a", Path("runs/a"), "x" * 255, "é" * 127])
def test_paths(value: str | Path) -> None:
    assert as_path(value, "out") == Path(value)


@pytest.mark.parametrize("value", [None, 3, b"folder", object(), "", "a\0b", "x" * 256, "é" * 128])
def test_what_is_no_path(value: object) -> None:
    with pytest.raises(InputError, match=r"out: got .*, expected"):
        as_path(value, "out")
