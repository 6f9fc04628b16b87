"""Obtains the raw files of benchmarks: from a folder or by download, checked by SHA-256 sums.

Some of the files are pickles, which can run any code when PyG loads them. So a file is only given
to PyG if it has the sum of the published one. ``checksums.txt`` is in the format of ``sha256sum``.
"""

import hashlib
import shutil
import urllib.request
from collections.abc import Callable
from functools import cache
from pathlib import Path

from dgt.errors import InputError


@cache
def checksums() -> dict[str, str]:
    """Returns the SHA-256 sums of the published files by path, relative to the root folder."""
    lines = (Path(__file__).parent / "checksums.txt").read_text().splitlines()
    return {path: digest for digest, path in (line.split("  ") for line in lines)}


def obtain(
    names: list[str], found: Path | None, target: Path, folder: str, url: Callable[[str], str]
) -> None:
    """Copies or downloads files and checks their sums.

    The copies are checked and used, so that the files cannot change in between.

    Args:
        names: Names of the files.
        found: Folder that may have them. Missing ones are downloaded.
        target: Folder to copy them to.
        folder: Folder in ``checksums.txt``.
        url: Returns the address of a file.
    """
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        source, path = None if found is None else found / name, target / name
        if source is not None and source.is_file():
            shutil.copyfile(source, path)
            place = str(source)
        else:
            place = url(name)
            download(place, path)
        got, expected = _sum(path), checksums()[f"{folder}/{name}"]
        if got != expected:
            raise InputError(
                f"{place}: not the published file: its SHA-256 sum is {got}, expected {expected}"
            )


def download(url: str, path: Path) -> Path:
    """Downloads a file, unless it exists.

    ``download_url`` of PyG does not verify certificates; the default of urllib does.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with urllib.request.urlopen(url) as response, open(path, "wb") as file:
            shutil.copyfileobj(response, file)
    return path


def _sum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
