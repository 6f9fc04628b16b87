"""A user's own files, and graphs in memory, to `Data`; predictions to files."""

from pathlib import Path

from torch_geometric.data import Data

from dgt.errors import InputError
from dgt.io.folder import read_folder
from dgt.io.graph import info, normalise
from dgt.io.npz import read_npz, write_npz
from dgt.io.nx import from_networkx
from dgt.io.predictions import check_predictions_path, write_predictions
from dgt.io.pt import read_pt

__all__ = [
    "check_predictions_path",
    "from_networkx",
    "info",
    "normalise",
    "read",
    "read_folder",
    "read_npz",
    "read_pt",
    "write_npz",
    "write_predictions",
]


def read(path: Path | str) -> Data:
    """Reads a graph from a folder, an ``.npz`` or a ``.pt`` file."""
    path = Path(path)
    if path.is_dir():
        return read_folder(path)
    readers = {".npz": read_npz, ".pt": read_pt}
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.suffix not in readers:
        raise InputError(
            f"{path}: expected a folder with nodes and edges, an .npz file or a .pt file"
        )
    return readers[path.suffix](path)
