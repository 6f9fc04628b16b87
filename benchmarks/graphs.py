"""A synthetic graph of any size with the heavy-tailed degrees of real ones."""

import numpy as np
import torch
from torch_geometric.data import Data

# Degrees fall as rank ** -EXPONENT; at ogbn-arxiv's size the largest is near its real 13,161.
EXPONENT = 0.66


def power_law_graph(
    nodes: int = 169_343,
    edges: int = 1_166_243,
    features: int = 128,
    classes: int = 40,
    seed: int = 0,
) -> Data:
    """A random graph whose nodes have power-law degrees, and random features and labels.

    Args:
        nodes: number of nodes N.
        edges: number of undirected edges, exactly; no self-loops, no duplicates.
        features: number of features, normally distributed.
        classes: number of classes, uniformly distributed.
        seed: seed of everything.
    """
    if edges > nodes * (nodes - 1) // 4:
        raise ValueError(f"{edges} edges are too many for {nodes} nodes")
    random = np.random.default_rng(seed)
    cumulative = np.cumsum(np.arange(1, nodes + 1) ** -EXPONENT)
    names = random.permutation(nodes)
    found = np.empty(0, dtype=np.int64)
    while len(found) < edges:
        wanted = int(1.1 * (edges - len(found))) + 16
        ends = names[np.searchsorted(cumulative, random.random((2, wanted)) * cumulative[-1])]
        low, high = ends.min(axis=0), ends.max(axis=0)
        found = np.union1d(found, (low * nodes + high)[low != high])
    found = random.permutation(found)[:edges]
    low, high = found // nodes, found % nodes
    directed = np.sort(np.concatenate([low * nodes + high, high * nodes + low]))
    return Data(
        x=torch.from_numpy(random.standard_normal((nodes, features), dtype=np.float32)),
        edge_index=torch.from_numpy(np.stack([directed // nodes, directed % nodes])),
        y=torch.from_numpy(random.integers(0, classes, nodes)),
    )
