"""Sequences kept on disk, by a hash of everything that decides them."""

import contextlib
import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from dgt.errors import InputError
from dgt.files import cache_folder, write_atomically

# To be raised when the same settings give other sequences than before.
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


def cached(name: str, shape: tuple[int, int], make: Callable[[], np.ndarray]) -> np.ndarray:
    """The sequences of this :func:`fingerprint`, int32 ``shape``, from the cache or else made anew
    and kept.

    A file that is damaged is made anew; a cache that cannot be written is done without.
    """
    path = cache_folder() / "sequences" / f"{name}.npy"
    sequences = _read(path)
    if sequences is None or sequences.shape != shape or sequences.dtype != np.int32:
        sequences = make()
        with contextlib.suppress(InputError, OSError):
            write_atomically(path, lambda beside: _write(beside, sequences))
    return sequences


def _write(path: Path, sequences: np.ndarray) -> None:
    """The array as NumPy saves it, and the digest of that at the end."""
    buffer = io.BytesIO()
    np.save(buffer, sequences, allow_pickle=False)
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
