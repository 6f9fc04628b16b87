"""The degree encoding: how many links a node has."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import EncodingConfig
from dgt.data.direction import directed_adjacency, is_directed
from dgt.data.matrices import adjacency
from dgt.encodings.encoding import Encoding


def degree_columns(data: Data) -> Tensor:
    r"""Computes :math:`\log_{10}(1 + d)` for the numbers :math:`d` of a node's in-links, out-links
    and neighbors. If the direction of the edges is not known, all three are the neighbors.

    The formula has no constant of the graph, so that the columns mean the same on every graph.

    Returns:
        float32 ``(N, 3)``.
    """
    neighbors = np.diff(adjacency(data.edge_index, data.num_nodes).indptr)
    into = out = neighbors
    if is_directed(data):
        into, out = (np.diff(directed_adjacency(data, way).indptr) for way in ("in", "out"))
    columns = np.log10(1 + np.stack([into, out, neighbors], axis=1))
    return torch.from_numpy(columns.astype(np.float32))


def _columns(data: Data, settings: EncodingConfig, anchors: Tensor | None) -> Tensor:
    return degree_columns(data)


DEGREE = Encoding(columns=_columns, carries_over="always", direction="used")
