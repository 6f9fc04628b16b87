"""Graphs saved with ``torch.save``, loaded without executing code from the file."""

import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from dgt.data.files.arrays import from_arrays
from dgt.data.files.normalization import normalize
from dgt.errors import InputError
from dgt.storage.paths import require_regular

# Classes inside a saved Data that torch_geometric does not declare as safe itself.
_STORAGE = [DataEdgeAttr, DataTensorAttr, GlobalStorage]
_EXPECTED = "expected a PyG Data or a dict of tensors, saved with torch.save"


def read_pt(path: Path | str, directed: bool | None = None) -> Data:
    """Reads a PyG ``Data`` or a dict, as described in :func:`dgt.data.files.arrays.from_arrays`.

    Files are loaded with ``weights_only=True``: files with objects other than tensors and plain
    values are refused, since loading them could execute code.

    Args:
        path: The file.
        directed: Whether the edges are directed (default: see
            :func:`~dgt.data.files.normalization.normalize`).
    """
    path = Path(path)
    require_regular(path)
    _require_sums(path)
    content = _load(path)
    try:
        if isinstance(content, dict):
            return from_arrays(content, str(path), directed)
        if isinstance(content, Data):
            # A manipulated file may lack any attribute, even those that num_nodes reads.
            return normalize(content, str(path), directed)
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged: {error}; {_EXPECTED}") from None
    raise InputError(f"{path}: got {type(content).__name__}, {_EXPECTED}")


def _require_sums(path: Path) -> None:
    """Raises an error if a part of the file does not have its checksum; torch.load ignores them."""
    if not zipfile.is_zipfile(path):
        return  # the format of PyTorch before 1.6, without checksums
    try:
        with zipfile.ZipFile(path) as file:
            part = file.testzip()
    except Exception as error:
        # Damaged files raise errors of zipfile, zlib or struct.
        raise InputError(f"{path}: damaged: {type(error).__name__}; {_EXPECTED}") from None
    if part is not None:
        raise InputError(f"{path}: damaged: {part!r} has another checksum; {_EXPECTED}")


def _load(path: Path) -> Any:
    try:
        with torch.serialization.safe_globals(_STORAGE), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # Invalid and truncated files raise arbitrary errors.
        unsafe = re.search(r"GLOBAL (\S+)", str(error))
        if unsafe:
            raise InputError(
                f"{path}: refused: loading it would execute {unsafe[1]}, which is not known to "
                f"be safe; {_EXPECTED}"
            ) from None
        raise InputError(
            f"{path}: not a file written by torch.save, or damaged; {_EXPECTED}"
        ) from None
