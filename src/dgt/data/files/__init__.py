"""Reads and writes files of graphs and of predictions.

One module per format: ``folder`` (CSV and Parquet), ``npz`` and ``pt``; ``networkx`` converts
graphs in memory. ``frame`` reads named columns, ``columns`` and ``arrays`` interpret them, and
``normalization`` checks the result. Every mistake in a file raises an
:class:`~dgt.errors.InputError` that names the file, the row and the column.
"""

from pathlib import Path

from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data.files.folder import read_folder
from dgt.data.files.networkx import from_networkx
from dgt.data.files.normalization import info, normalize
from dgt.data.files.npz import read_npz, write_npz
from dgt.data.files.predictions import Predictions, check_predictions_path, write_predictions
from dgt.data.files.pt import read_pt
from dgt.errors import InputError

__all__ = [
    "Predictions",
    "check_predictions_path",
    "from_networkx",
    "info",
    "normalize",
    "read",
    "read_folder",
    "read_npz",
    "read_pt",
    "write_npz",
    "write_predictions",
]


def read(path: Path | str, settings: DataConfig | None = None) -> Data:
    """Reads a graph from a folder, an ``.npz`` file or a ``.pt`` file.

    Args:
        path: The folder or file.
        settings: How to read a folder of tables, and whether edges are directed.
    """
    path = Path(path)
    if path.is_dir():
        return read_folder(path, settings)
    readers = {".npz": read_npz, ".pt": read_pt}
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.suffix not in readers:
        raise InputError(
            f"{path}: expected a folder with nodes and edges, an .npz file or a .pt file"
        )
    return readers[path.suffix](path, None if settings is None else settings.directed)
