"""Obtains the raw files of benchmarks: from a folder or by download, checked by SHA-256 sums.

Some of the files are pickles, which can run any code when PyG loads them. So a file is only given
to PyG if it has the sum of the published one. ``checksums.txt`` is in the format of ``sha256sum``.
"""

import hashlib
import shutil
import urllib.request
import zipfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

from dgt.errors import InputError

LARGEST = 2**33  # bytes of a downloaded file; the features of Reddit have about 560 MB


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
        require_sum(path, f"{folder}/{name}", place)


def require_sum(path: Path, name: str, place: str) -> None:
    """Raises an error unless a file has the published SHA-256 sum.

    Args:
        path: The file.
        name: Its name in ``checksums.txt``.
        place: Where it comes from, for error messages.
    """
    with open(path, "rb") as file:
        got, expected = hashlib.file_digest(file, "sha256").hexdigest(), checksums()[name]
    if got != expected:
        raise InputError(
            f"{place}: not the published file: its SHA-256 sum is {got}, expected {expected}"
        )


def download(url: str, path: Path) -> Path:
    """Downloads a file over HTTPS, unless it exists.

    ``download_url`` of PyG does not verify certificates; the default of urllib does.
    """
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_url(url) as response, open(path, "wb") as file:
            while piece := response.read(2**20):
                file.write(piece)
                if file.tell() > LARGEST:
                    raise InputError(f"{url}: has more than {LARGEST:,} bytes")
    return path


def extract(archive: Path, names: Mapping[str, Path]) -> None:
    """Extracts some files of a ZIP archive.

    Args:
        archive: The archive.
        names: Target of each file, by the end of its path in the archive.
    """
    with zipfile.ZipFile(archive) as file:
        for entry in file.infolist():
            ends = (end for end in names if f"/{entry.filename}".endswith(f"/{end}"))
            for target in map(names.__getitem__, ends):
                if entry.file_size > LARGEST:
                    raise InputError(f"{archive}: {entry.filename}: more than {LARGEST:,} bytes")
                target.parent.mkdir(parents=True, exist_ok=True)
                with file.open(entry) as source, open(target, "wb") as copy:
                    shutil.copyfileobj(source, copy)


def open_url(url: str) -> IO[bytes]:
    """Opens an address with verified certificates; redirects must not leave HTTPS."""
    _require_https(url)
    opener = urllib.request.build_opener(_SecureRedirects)
    return cast(IO[bytes], opener.open(url))


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> urllib.request.Request | None:
        _require_https(arguments[-1])
        return super().redirect_request(*arguments)


def _require_https(url: str) -> None:
    if not url.startswith("https://"):
        raise InputError(f"{url}: not an HTTPS address")
