"""Caches the rows of large matrices on disk, in segments of a fixed size.

A segment depends only on its index, so processes can compute segments in any order and get the same
files. A file is either complete or missing, and a digest detects damage.
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

from dgt.errors import InputError
from dgt.storage.files import write_atomically
from dgt.system.progress import progress_bar

# Rows per segment. File names and contents depend on it.
ROWS = 8192
DIGEST_SIZE = 32

Advance = Callable[[int], None]


@dataclass(frozen=True)
class CachedRows:
    """The rows of one or more matrices, and how to compute them."""

    name: str
    """Folder of the segments, named by a fingerprint of everything that the rows depend on."""
    title: str
    """Title of the progress bar."""
    num_rows: int
    make: Callable[[int, int, Advance], list[np.ndarray]]
    """Computes the arrays for the rows from start to stop. The last argument is called with the
    number of rows processed since the last call."""
    begin: Callable[[bool], None] = lambda progress: None
    """Computes what all rows need, such as an index, with progress bars of its own if asked for.
    Without this call, :attr:`make` does so when it is first called."""

    def segments(self, shard: tuple[int, int] = (0, 1)) -> range:
        """Returns the segments of shard ``shard[0]`` of ``shard[1]`` shards."""
        return range(shard[0], -(-self.num_rows // ROWS), shard[1])

    def span(self, segment: int) -> tuple[int, int]:
        """Returns the first row of a segment and the end (exclusive)."""
        return segment * ROWS, min((segment + 1) * ROWS, self.num_rows)

    def path(self, folder: Path, segment: int) -> Path:
        return folder / self.name / f"{segment:06d}.npy"

    def missing(self, folder: Path, shard: tuple[int, int] = (0, 1)) -> list[int]:
        """Returns the segments of a shard that are not on disk."""
        return [s for s in self.segments(shard) if not self.path(folder, s).is_file()]


def through(
    rows: CachedRows,
    folder: Path,
    shard: tuple[int, int] = (0, 1),
    progress: bool = False,
    must_write: bool = False,
) -> Iterator[list[np.ndarray]]:
    """Yields the arrays of each segment, read from disk, or computed and written to disk.

    Args:
        rows: The rows.
        folder: Folder of the cache.
        shard: Index and number of shards; only the segments of this shard are used.
        progress: Show a progress bar while segments are computed.
        must_write: Raise an error if a segment cannot be written (default: ignore it).
    """
    spans = map(rows.span, rows.missing(folder, shard))
    total = sum(stop - start for start, stop in spans)
    if total > 0:
        rows.begin(progress)
    with progress_bar(rows.title, total, progress and total > 0) as advance:
        for segment in rows.segments(shard):
            path = rows.path(folder, segment)
            arrays = read_arrays(path)
            if arrays is not None:
                _remove_parts(path)
            else:
                arrays = rows.make(*rows.span(segment), advance)
                try:
                    write_arrays(path, arrays)
                except InputError:
                    if must_write and not path.is_file():
                        raise
            yield arrays


def write_arrays(path: Path, arrays: list[np.ndarray]) -> None:
    """Writes arrays in NumPy's format, followed by a digest."""
    buffer = io.BytesIO()
    for array in arrays:
        np.save(buffer, array, allow_pickle=False)
    content = buffer.getvalue()

    def write(beside: Path) -> None:
        beside.write_bytes(content + hashlib.blake2b(content, digest_size=DIGEST_SIZE).digest())

    _write(path, write)


def read_arrays(path: Path) -> list[np.ndarray] | None:
    """Reads a file of :func:`write_arrays`; returns None if it is missing or damaged."""
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
    """Memory-maps an array in copy-on-write mode: changes to it stay in memory.

    Args:
        path: The file. It is written if it is missing or damaged.
        shape: Shape of the array.
        dtype: Type of the array.
        parts: Returns the values in order, in several parts.

    Returns:
        The array, or None if the file cannot be written.
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

    if _is_whole(path):
        _remove_parts(path)
    else:
        try:
            _write(path, write)
        except InputError:
            return None
    return np.lib.format.open_memmap(path, mode="c")


def _write(path: Path, write: Callable[[Path], None]) -> None:
    """Writes a file atomically, and removes temporary files that killed processes have left.

    Another process that is still writing the same file then uses ours.
    """
    write_atomically(path, write)
    _remove_parts(path)


def _remove_parts(path: Path) -> None:
    """Removes what killed processes have left of a file that is now complete."""
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
    """Returns the digest of the first ``size`` bytes of a file, read in pieces."""
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    while size > 0 and (piece := file.read(min(size, 2**24))):
        digest.update(piece)
        size -= len(piece)
    return digest.digest()
