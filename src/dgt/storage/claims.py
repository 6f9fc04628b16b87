"""Exclusive use of a folder by one process."""

import contextlib
import errno
import logging
import os
from pathlib import Path
from typing import IO

from dgt.errors import InputError
from dgt.storage.locks import lock

LOCK = ".lock"
TRIES = 1000
# Some network file systems do not support locks.
UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}

log = logging.getLogger("dgt")


class Claim:
    """Reserves a folder for this process by a locked file in it.

    The operating system frees the lock when the process ends, even if it is killed. A lock file
    that is left over is thus harmless, and the next owner uses it. The lock also holds between
    machines that share the folder by NFS.

    Args:
        folder: The folder. It is created if it is missing.
        busy: Message of the error if another process has the folder.
    """

    def __init__(self, folder: Path, busy: str) -> None:
        self.folder = folder
        self._made: list[Path] = []
        try:
            self._file = self._locked(busy)
        except OSError as error:
            self._remove_made()
            raise InputError(f"{folder}: cannot write here: {error.strerror}") from None

    def require_held(self) -> None:
        """Raises an :class:`OSError` if the folder was removed or replaced since it was claimed."""
        if not _is_same(self.folder / LOCK, self._file):
            raise OSError(f"{self.folder}: the folder was removed or replaced by another program")

    def is_held(self) -> bool:
        """Returns whether the folder is still the claimed one."""
        return _is_same(self.folder / LOCK, self._file)

    def release(self) -> None:
        """Frees the folder, and removes it if it was created by this claim and is empty."""
        if self._file.closed:
            return
        with self._file:
            if self.is_held():
                (self.folder / LOCK).unlink(missing_ok=True)
        self._remove_made()

    def _locked(self, busy: str) -> IO[bytes]:
        """Opens and locks the file. The previous owner may remove it, or the folder, meanwhile."""
        path = self.folder / LOCK
        for _ in range(TRIES):
            self._make()
            try:
                # A link would lead to a file in another folder.
                flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
                file = os.fdopen(os.open(path, flags, 0o644), "r+b")
            except FileNotFoundError:
                continue
            if not _lock(file, self.folder):
                file.close()
                self._remove_made()
                raise InputError(f"{self.folder}: {busy}")
            if _is_same(path, file):
                return file
            file.close()
        raise InputError(f"{self.folder}: {busy}")

    def _make(self) -> None:
        missing = []
        for folder in (self.folder, *self.folder.parents):
            if folder.exists():
                break
            missing.append(folder)
        for folder in reversed(missing):
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                if folder not in self._made:
                    self._made.append(folder)

    def _remove_made(self) -> None:
        with contextlib.suppress(OSError):  # not empty
            for folder in reversed(self._made):
                folder.rmdir()


def _lock(file: IO[bytes], folder: Path) -> bool:
    try:
        return lock(file, wait=False)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        log.warning(
            "%s: the file system does not support locks; make sure that no other process uses this "
            "folder",
            folder,
        )
        return True


def _is_same(path: Path, file: IO[bytes]) -> bool:
    """Returns whether the file at a path is the open file."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(file.fileno()))
    except OSError:
        return False
