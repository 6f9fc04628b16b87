"""Writes and reads safetensors files that carry a digest of their content."""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor

from dgt.config.documents import shown
from dgt.errors import InputError
from dgt.storage.files import write_bytes
from dgt.storage.paths import require_regular

# The name of a tensor, since safetensors writes several entries of metadata in a random order, and
# equal models must have equal files.
DIGEST = "digest"


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Writes a safetensors file atomically, with a digest of the tensors and the metadata.

    ``safetensors.torch.save_file`` is not used because it may leave a temporary file after a crash.
    """
    digest = torch.frombuffer(bytearray(_digest(tensors, metadata)), dtype=torch.uint8)
    write_bytes(path, serialize({**_apart(tensors), DIGEST: digest}, metadata))


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns contiguous tensors of which no two share memory, as tied weights of a model do."""
    apart: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, value in tensors.items():
        value = value.contiguous()
        place = value.untyped_storage().data_ptr()
        apart[name] = value.clone() if place in taken else value
        taken.add(place)
    return apart


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Reads a safetensors file and checks its digest. Files of version 0.1 have none.

    Returns:
        The tensors and the metadata.
    """
    require_regular(path)
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        expected = tensors.pop(DIGEST, None)
        found = _digest(tensors, metadata)
    # Damaged headers also raise errors of other kinds, for instance for an unknown dtype.
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "unreadable"
        raise InputError(f"{path}: truncated, or not a safetensors file: {reason}") from None
    if expected is not None and expected.tolist() != list(found):
        raise InputError(f"{path}: damaged: its content does not match its digest")
    return tensors, metadata


def _digest(tensors: dict[str, Tensor], metadata: dict[str, str]) -> bytes:
    """Hashes the metadata and the names, types, shapes and bits of the tensors."""
    digest = hashlib.blake2b(json.dumps(metadata, sort_keys=True).encode(), digest_size=32)
    for name, value in sorted(tensors.items()):
        digest.update(json.dumps([name, str(value.dtype), list(value.shape)]).encode())
        digest.update(value.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.digest()


def require_like(path: Path, tensors: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raises an error unless tensors have the names, shapes and types of others, and are finite.

    Args:
        path: The file that they were read from.
        tensors: The tensors by name.
        expected: Tensors with the expected names, shapes and types, for instance on ``meta``.
    """
    for name in sorted(expected.keys() ^ tensors.keys()):
        lacks = "lacks the tensor" if name in expected else "has an unknown tensor"
        raise InputError(f"{path}: {lacks} {shown(name)}")
    for name, value in tensors.items():
        wanted = expected[name]
        if value.shape != wanted.shape or value.dtype != wanted.dtype:
            raise InputError(
                f"{path}: {name}: expected {wanted.dtype} {list(wanted.shape)}, "
                f"got {value.dtype} {list(value.shape)}"
            )
    require_finite(path, tensors)


def require_finite(path: Path, tensors: dict[str, Tensor]) -> None:
    """Raises an error if tensors hold NaN or infinite values."""
    for name, value in tensors.items():
        # Types of 8 bits do not support isfinite.
        values = value if value.element_size() > 1 else value.float()
        if value.is_floating_point() and not bool(values.isfinite().all()):
            raise InputError(
                f"{path}: {name}: holds NaN or infinite weights; train the model again"
            )
