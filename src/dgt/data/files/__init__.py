"""Reads and writes files of graphs and of predictions.

One module per format: ``folder`` (CSV and Parquet), ``npz``, ``pt``, ``xml_graph`` (GraphML and
GEXF) and ``mtx`` (MatrixMarket); ``networkx`` converts graphs in memory. ``frame`` reads named
columns, ``columns`` and ``arrays`` interpret them, and ``normalization`` checks the result. Every
mistake in a file raises an :class:`~dgt.errors.InputError` that names the file, the row and the
column.
"""

from pathlib import Path

from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data.files.folder import read_folder
from dgt.data.files.mtx import read_mtx
from dgt.data.files.networkx import from_networkx
from dgt.data.files.normalization import info, normalize
from dgt.data.files.npz import read_npz, write_npz
from dgt.data.files.predictions import Predictions, check_predictions_path, write_predictions
from dgt.data.files.pt import read_pt
from dgt.data.files.xml_graph import read_xml
from dgt.errors import InputError

__all__ = [
    "Predictions",
    "check_predictions_path",
    "from_networkx",
    "info",
    "normalize",
    "read",
    "read_folder",
    "read_mtx",
    "read_npz",
    "read_pt",
    "read_xml",
    "write_npz",
    "write_predictions",
]


def read(path: Path | str, settings: DataConfig | None = None, labeled: bool = True) -> Data:
    """Reads a graph from a folder or from an ``.npz``, ``.pt``, ``.graphml``, ``.gexf`` or
    ``.mtx`` file.

    Args:
        path: The folder or file.
        settings: How to read tables and attributes, and whether edges are directed.
        labeled: Whether a folder must have the columns of labels and splits that are set.
    """
    path = Path(path)
    if path.is_dir():
        return read_folder(path, settings, labeled)
    arrays = {".npz": read_npz, ".pt": read_pt}
    tables = {".graphml": read_xml, ".gexf": read_xml, ".mtx": read_mtx}
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    if path.suffix in tables:
        return tables[path.suffix](path, settings)
    if path.suffix not in arrays:
        raise InputError(
            f"{path}: expected a folder with nodes and edges, or a file that ends with "
            f"{', '.join([*arrays, *tables])}"
        )
    return arrays[path.suffix](path, None if settings is None else settings.directed)
