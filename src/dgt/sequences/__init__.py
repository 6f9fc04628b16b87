"""NodeSort: for each node and criterion, the nodes that come first from its point of view."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.graph import adjacency
from dgt.sequences.bfs import bfs
from dgt.sequences.ppr import ppr
from dgt.sequences.similarity import similarity


def node_sequences(
    data: Data,
    criteria=("bfs", "ppr", "similarity"),
    length: int = 64,
    ppr_alpha: float = 0.15,
    ppr_tolerance: float = 1e-6,
    progress: bool = False,
) -> Tensor:
    graph = adjacency(data.edge_index, data.num_nodes)
    advance = lambda n: None
    ways = {
        "bfs": lambda: bfs(graph, length, advance),
        "ppr": lambda: ppr(graph, length, ppr_alpha, ppr_tolerance, advance),
        "similarity": lambda: similarity(data.x, length, advance),
    }
    return torch.from_numpy(np.stack([ways[c]() for c in criteria]))
