"""Graphs in MatrixMarket files, read by SciPy: an adjacency matrix whose values are weights."""

from pathlib import Path

import numpy as np
import pyarrow as pa
from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data.files.edges import edge_table
from dgt.data.files.folder import assemble
from dgt.data.files.frame import Frame, read_matrix
from dgt.errors import InputError


def read_mtx(path: Path | str, settings: DataConfig | None = None) -> Data:
    """Reads a square matrix. Its nodes have the ids 1, 2, ... of its rows, and no labels.

    Args:
        path: A file that ends with ``.mtx``.
        settings: Whether the edges are directed (default: if the file is not symmetric).
    """
    path, settings = Path(path), settings or DataConfig()
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    edges, size, symmetric = read_matrix(path)
    ids = {"id": pa.chunked_array([pa.array(np.arange(1, size + 1))])}
    nodes = Frame(str(path), ids, "row {}".format, typed=True)
    directed = not symmetric if settings.directed is None else settings.directed
    return assemble(str(path), nodes, [edge_table("edges", edges, settings)], settings, directed)
