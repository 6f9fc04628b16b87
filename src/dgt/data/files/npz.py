"""Graphs in ``.npz`` files, without pickle."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from torch_geometric.data import Data

from dgt.data.direction import DIRECTED, is_directed
from dgt.data.files.arrays import from_arrays
from dgt.errors import InputError, MemoryNeeded, first_line
from dgt.storage.files import write_atomically
from dgt.storage.paths import require_regular
from dgt.system import machine


def read_npz(path: Path | str, directed: bool | None = None) -> Data:
    """Reads a graph; :func:`~dgt.data.files.arrays.from_arrays` lists the accepted arrays.

    Args:
        path: The file.
        directed: Whether the edges are directed (default: if the file says so).
    """
    path = Path(path)
    require_regular(path)
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path}: not an .npz file, or a truncated one")
    arrays = {}
    try:
        with zipfile.ZipFile(path) as archive:
            content = sum(member.file_size for member in archive.infolist())
        machine.require(content, f"{path}: its content")
        with np.load(path, allow_pickle=False) as file:
            for name in file.files:
                arrays[name] = file[name]
    except MemoryNeeded:
        raise
    except Exception as error:
        # Damaged files raise errors of zipfile, zlib, struct or NumPy.
        raise InputError(f"{path}: not a readable .npz file: {first_line(error)}") from None
    return from_arrays(arrays, str(path), directed)


def write_npz(path: Path, data: Data) -> None:
    """Writes a compact file: each edge once, and features in CSR format if that is smaller."""
    once = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    edges = data[DIRECTED] if is_directed(data) else once
    arrays: dict[str, Any] = {
        "edges": _narrow(edges.t().numpy()),
        "y": data.y.numpy().astype(np.int16 if len(data.class_names) < 2**15 else np.int64),
    }
    x = data.x.numpy()
    if np.count_nonzero(x) < 0.3 * x.size:
        matrix = scipy.sparse.csr_matrix(x)
        arrays["x_indptr"] = _narrow(matrix.indptr)
        arrays["x_indices"] = _narrow(matrix.indices)
        arrays["x_shape"] = np.array(x.shape)
        if not (matrix.data == 1).all():
            arrays["x_data"] = matrix.data
    else:
        arrays["x"] = x
    if is_directed(data):
        arrays["directed"] = np.array(True)
    for key in ("train_mask", "val_mask", "test_mask"):
        if key in data:
            arrays[key] = data[key].numpy()
    for key in ("class_names", "node_ids", "feature_names"):
        if key in data:
            arrays[key] = np.array(data[key])
    write_atomically(path, lambda beside: np.savez_compressed(beside, **arrays))


def _narrow(numbers: np.ndarray) -> np.ndarray:
    """Casts nonnegative integers to the smallest type that fits."""
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))
