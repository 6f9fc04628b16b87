"""Graphs saved with torch, read without running anything that the file holds."""

import re
import warnings
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from dgt.errors import InputError
from dgt.io.arrays import from_arrays
from dgt.io.graph import normalise

# The classes of which a saved Data is made, besides those that torch_geometric allows itself.
_STORAGE = [DataEdgeAttr, DataTensorAttr, GlobalStorage]
_EXPECTED = "expected a PyG Data or a dict of tensors, saved with torch.save"


def read_pt(path: Path) -> Data:
    """Reads a PyG ``Data``, or a dict with the names of :func:`dgt.io.arrays.from_arrays`.

    Only tensors and plain values are built (``weights_only=True``): a file that holds other
    objects, which could run code while it is loaded, is refused.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    content = _load(path)
    try:
        if isinstance(content, dict):
            return from_arrays(content, str(path))
        if isinstance(content, Data):
            # Also the node count reads attributes, and a doctored file may lack any of them.
            return normalise(content, str(path))
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged: {error}; {_EXPECTED}") from None
    raise InputError(f"{path}: holds a {type(content).__name__}, {_EXPECTED}")


def _load(path: Path) -> Any:
    try:
        with torch.serialization.safe_globals(_STORAGE), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # Foreign and truncated files raise whatever the reader met first.
        unsafe = re.search(r"GLOBAL (\S+)", str(error))
        if unsafe:
            raise InputError(
                f"{path}: refused: loading it would run {unsafe[1]}, which is not known to be "
                f"safe; {_EXPECTED}"
            ) from None
        raise InputError(
            f"{path}: not a file saved with torch, or a damaged one; {_EXPECTED}"
        ) from (None)
