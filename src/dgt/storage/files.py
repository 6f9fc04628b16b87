"""The cache folder, and atomic writes: to a temporary file next to the target, then renamed."""

import contextlib
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from dgt.errors import InputError
from dgt.system.folders import user_cache


def cache_folder() -> Path:
    """Returns ``DGT_CACHE``, or the folder ``dgt`` in the cache folder of the platform.

    If that cannot be written, it is a temporary folder.
    """
    given = os.environ.get("DGT_CACHE")
    if not given:
        return user_cache()
    try:
        return Path(given).expanduser()
    except RuntimeError:
        raise InputError(f"DGT_CACHE: {given}: there is no home folder") from None


def write_atomically(path: Path | str, write: Callable[[Path], None], replace: bool = True) -> None:
    """Writes a file so that it is never seen incomplete, even after a crash.

    Args:
        path: File to create or replace. Missing parent folders are created.
        write: Writes the content to the path it is given: a new file in the folder of :obj:`path`
            with the same extension.
        replace: Replace an existing file. Otherwise, if several processes write the same file, one
            succeeds and all others raise an error.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise InputError(f"{path}: cannot write here: it is not a regular file")
    beside = target.with_name(f".{target.stem}.{secrets.token_hex(6)}.part{target.suffix}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write(beside)
        _sync(beside)
        if replace:
            os.replace(beside, target)
        else:
            _move_to_new(beside, target)
    except OSError as error:
        if not replace and target.exists():
            raise InputError(f"{path}: exists; choose another file or pass --overwrite") from None
        raise InputError(f"{path}: cannot write: {error.strerror or error}") from error
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
    # Some file systems cannot fsync a folder. The rename is still atomic.
    with contextlib.suppress(OSError):
        _sync(target.parent)


def write_bytes(path: Path | str, content: bytes) -> None:
    """Writes :obj:`content`, atomically."""

    def write(beside: Path) -> None:
        beside.write_bytes(content)

    write_atomically(path, write)


def write_text(path: Path | str, text: str) -> None:
    """Writes :obj:`text` as UTF-8, atomically."""
    write_bytes(path, text.encode())


def _move_to_new(source: Path, target: Path) -> None:
    """Renames a file, unless the target exists."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:  # hard links are not supported
        with open(target, "xb"):
            pass
        os.replace(source, target)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
