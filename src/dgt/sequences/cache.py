"""Sequences, and other arrays, kept on disk, by a hash of everything that decides them."""

import contextlib
import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from dgt.errors import InputError
from dgt.files import cache_folder, write_atomically

# To be raised when the same settings give another array than before.
VERSION = 1
DIGEST_SIZE = 32


def fingerprint(settings: tuple[object, ...], decisive: np.ndarray | csr_array) -> str:
    """A name that only these settings and this array, sparse or not, have."""
    parts = [decisive]
    if isinstance(decisive, csr_array):
        parts = [decisive.indptr, decisive.indices, decisive.data]
    digest = hashlib.blake2b(repr((VERSION, *settings)).encode(), digest_size=DIGEST_SIZE)
    for part in parts:
        digest.update(f" {part.dtype.str} {part.shape} ".encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def cached(
    name: str,
    shape: tuple[int, int],
    make: Callable[[], np.ndarray],
    kind: str = "sequences",
    dtype: type = np.int32,
) -> np.ndarray:
    """The array of this :func:`fingerprint`, of this shape and type, from the cache's folder
    ``kind`` or else made anew and kept.

    A file that is damaged is made anew; a cache that cannot be written is done without.
    """
    path = cache_folder() / kind / f"{name}.npy"
    array = _read(path)
    if array is None or array.shape != shape or array.dtype != dtype:
        array = make()
        with contextlib.suppress(InputError, OSError):
            write_atomically(path, lambda beside: _write(beside, array))
    return array


def _write(path: Path, array: np.ndarray) -> None:
    """The array as NumPy saves it, and the digest of that at the end."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    content = buffer.getvalue()
    path.write_bytes(content + _digest(content))


def _read(path: Path) -> np.ndarray | None:
    try:
        content = path.read_bytes()
    except OSError:
        return None
    content, digest = content[:-DIGEST_SIZE], content[-DIGEST_SIZE:]
    if digest != _digest(content):
        return None
    return np.load(io.BytesIO(content), allow_pickle=False)


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_SIZE).digest()
