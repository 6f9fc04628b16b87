"""Rows that take long to make, kept on disk in blocks of a fixed size.

A block depends on its place alone: any process may make any block, in any order, and the files are
the same. A file is whole or not there, and its digest tells damage.
"""

import contextlib
import hashlib
import io
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from scipy.sparse import csr_array

from dgt.errors import InputError
from dgt.files import write_atomically
from dgt.progress import progress_bar

# The files' names and content depend on it.
ROWS = 8192
# To be raised when the same settings give other rows than before.
VERSION = 1
DIGEST_SIZE = 32

Advance = Callable[[int], None]


@dataclass(frozen=True)
class Rows:
    """The rows of a large matrix, or of several side by side, and how to make them."""

    name: str
    """Folder of its blocks, with a :func:`fingerprint` of all that decides the rows."""
    title: str
    """What is being done while they are made."""
    num_rows: int
    make: Callable[[int, int, Advance], list[np.ndarray]]
    """The arrays for the rows from a first one up to another, and a call for each part done."""

    def blocks(self, shard: tuple[int, int] = (0, 1)) -> range:
        """The numbers of the blocks that the ``shard[0]``-th of ``shard[1]`` shards makes."""
        return range(shard[0], -(-self.num_rows // ROWS), shard[1])

    def span(self, block: int) -> tuple[int, int]:
        """A block's first row, and the one after its last."""
        return block * ROWS, min((block + 1) * ROWS, self.num_rows)

    def path(self, folder: Path, block: int) -> Path:
        return folder / self.name / f"{block:06d}.npy"

    def missing(self, folder: Path, shard: tuple[int, int] = (0, 1)) -> list[int]:
        """Those of a shard's blocks that are not on disk."""
        return [b for b in self.blocks(shard) if not self.path(folder, b).is_file()]


def fingerprint(settings: tuple[object, ...], *decisive: np.ndarray | csr_array) -> str:
    """A name that only these settings and these arrays, sparse or not, have."""
    digest = hashlib.blake2b(repr((VERSION, *settings)).encode(), digest_size=DIGEST_SIZE)
    for array in decisive:
        parts = [array]
        if isinstance(array, csr_array):
            parts = [array.indptr, array.indices, array.data]
        for part in parts:
            digest.update(f" {part.dtype.str} {part.shape} ".encode())
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def through(
    rows: Rows,
    folder: Path,
    shard: tuple[int, int] = (0, 1),
    progress: bool = False,
    must_write: bool = False,
) -> Iterator[list[np.ndarray]]:
    """The arrays of one block after the other, from disk or else made and kept there.

    Args:
        rows: What the blocks hold.
        folder: Where they are kept.
        shard: Only the blocks of this shard: which, of how many.
        progress: Show a progress bar while blocks are made.
        must_write: A block that cannot be written is an error; else it is done without.
    """
    spans = map(rows.span, rows.missing(folder, shard))
    total = sum(stop - start for start, stop in spans)
    with progress_bar(rows.title, total, progress and total > 0) as advance:
        for block in rows.blocks(shard):
            path = rows.path(folder, block)
            arrays = read_arrays(path)
            if arrays is None:
                arrays = rows.make(*rows.span(block), advance)
                try:
                    write_arrays(path, arrays)
                except InputError:
                    if must_write and not path.is_file():
                        raise
            yield arrays


def write_arrays(path: Path, arrays: list[np.ndarray]) -> None:
    """The arrays as NumPy saves them, and the digest of that at the end."""
    buffer = io.BytesIO()
    for array in arrays:
        np.save(buffer, array, allow_pickle=False)
    content = buffer.getvalue()

    def write(beside: Path) -> None:
        beside.write_bytes(content + hashlib.blake2b(content, digest_size=DIGEST_SIZE).digest())

    _write(path, write)


def read_arrays(path: Path) -> list[np.ndarray] | None:
    """What :func:`write_arrays` has written, or None for a file that is damaged or not there."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    content, digest = content[:-DIGEST_SIZE], content[-DIGEST_SIZE:]
    if digest != hashlib.blake2b(content, digest_size=DIGEST_SIZE).digest():
        return None
    buffer, arrays = io.BytesIO(content), []
    while buffer.tell() < len(content):
        arrays.append(np.load(buffer, allow_pickle=False))
    return arrays


def mapped(
    path: Path,
    shape: tuple[int, ...],
    dtype: type[np.generic],
    parts: Callable[[], Iterable[np.ndarray]],
) -> np.ndarray | None:
    """An array in a file, of which only what is read comes into memory; None if it cannot be kept.

    Changes to it stay in memory.

    Args:
        path: The file; made if it is damaged or not there.
        shape: The array's shape.
        dtype: Its type.
        parts: Gives its values in order, part by part.
    """

    def write(beside: Path) -> None:
        with open(beside, "wb") as file:
            header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for part in parts():
                file.write(np.ascontiguousarray(part, dtype).data)
        with open(beside, "r+b") as file:
            digest = _digest(file, os.path.getsize(beside))
            file.write(digest)

    if not _is_whole(path):
        try:
            _write(path, write)
        except InputError:
            return None
    return np.lib.format.open_memmap(path, mode="c")


def _write(path: Path, write: Callable[[Path], None]) -> None:
    """Writes a file atomically, and removes what a killed process has left of it. Another process
    that is still writing the same file then finds ours in its place."""
    write_atomically(path, write)
    for part in path.parent.glob(f".{path.stem}.*.part{path.suffix}"):
        with contextlib.suppress(OSError):
            part.unlink()


def _is_whole(path: Path) -> bool:
    try:
        with open(path, "rb") as file:
            size = os.path.getsize(path) - DIGEST_SIZE
            return size > 0 and _digest(file, size) == file.read(DIGEST_SIZE)
    except OSError:
        return False


def _digest(file: BinaryIO, size: int) -> bytes:
    """The digest of the first bytes of a file, read piece by piece."""
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    while size > 0 and (piece := file.read(min(size, 2**24))):
        digest.update(piece)
        size -= len(piece)
    return digest.digest()
