"""Hashes of arrays and settings."""

import hashlib
from collections.abc import Iterable

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

# Increase it when the same settings result in different arrays than before.
VERSION = 1


def fingerprint(
    arrays: Iterable[Tensor | np.ndarray | csr_array | None], settings: tuple[object, ...] = ()
) -> str:
    """Hashes the types, shapes and bits of dense or sparse arrays, and settings.

    Model files and checkpoints store fingerprints, so the hash of an array must never change.
    """
    digest = hashlib.blake2b(digest_size=16)
    if settings:
        digest.update(repr((VERSION, *settings)).encode())
    for array in arrays:
        if array is None:
            digest.update(b"none")
            continue
        digest.update(f"{array.dtype} {list(array.shape)}".encode())
        for part in _parts(array):
            digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def _parts(array: Tensor | np.ndarray | csr_array) -> tuple[np.ndarray, ...]:
    """Returns the dense arrays that an array consists of."""
    if isinstance(array, csr_array):
        return array.indptr, array.indices, array.data
    if isinstance(array, np.ndarray):
        return (array,)
    array = array.detach().cpu()
    if array.layout == torch.sparse_csr:
        parts = (array.crow_indices(), array.col_indices(), array.values())
        return tuple(_array(part) for part in parts)
    return (_array(array),)


def _array(x: Tensor) -> np.ndarray:
    """Returns a tensor as an array, or its bits if NumPy does not have its type."""
    return x.view(torch.int16).numpy() if x.dtype == torch.bfloat16 else x.numpy()
