"""The weights of edges, and the edge tables that they come from.

A graph with weights or with several edge tables has ``data.edge_weights``, float64 ``(E, R)``: the
weight of each edge in each of R tables, 0 if the table lacks it; and ``data.edge_names``, the names
of the tables. All other graphs have neither, and each of their edges has weight 1.
"""

import copy

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.direction import DIRECTED, DIRECTED_WEIGHTS, is_directed
from dgt.errors import InputError, nearest

NAMES, WEIGHTS = "edge_names", "edge_weights"


def table_names(data: Data) -> list[str]:
    """Returns the names of the edge tables if there are several, else nothing."""
    names = data.get(NAMES)
    return list(names) if names is not None and len(names) > 1 else []


def edge_weights(data: Data) -> Tensor | None:
    """Returns the sum of each edge's weights over all tables, scaled to mean 1; None if no table
    has weights. Shape: ``(E,)``, float64."""
    weights = data.get(WEIGHTS)
    if weights is None or bool(((weights == 0) | (weights == 1)).all()):
        return None
    sums = weights.sum(dim=1)
    return sums / sums.mean()


def of_table(data: Data, name: str) -> Data:
    """Returns a shallow copy of a graph with the edges of one table."""
    names = table_names(data)
    if name not in names:
        found = f"; {nearest(name, names)}" if names else ", which has a single edge table"
        raise InputError(f"{data.get('name') or 'graph'}: no edge table {name!r}{found}")
    column = data[WEIGHTS][:, names.index(name)]
    chosen = column > 0
    part = copy.copy(data)
    part.edge_index = data.edge_index[:, chosen]
    part[WEIGHTS], part[NAMES] = column[chosen][:, None], [name]
    if is_directed(data):
        column = data[DIRECTED_WEIGHTS][:, names.index(name)]
        part[DIRECTED], part[DIRECTED_WEIGHTS] = (
            data[DIRECTED][:, column > 0],
            column[column > 0][:, None],
        )
    return part


def joined_rows(
    edges: np.ndarray, weights: np.ndarray | None, num_nodes: int, directed: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Joins the rows of an edge table that connect the same two nodes.

    Args:
        edges: Source and target of each row. Shape: ``(2, E)``.
        weights: Weight of each row, or None. Shape: ``(E,)``.
        num_nodes: Number of nodes.
        directed: Keep the two directions of an edge apart.

    Returns:
        Edges, from the lower to the higher node unless they are directed, sorted, without
        self-loops; and the sums of their weights, or ones. The order of the rows does not matter.
    """
    low, high = edges if directed else (edges.min(axis=0), edges.max(axis=0))
    pairs = low * num_nodes + high
    if weights is None:
        pairs = np.unique(pairs[low != high])
        sums = np.ones(len(pairs))
    else:
        order = np.lexsort((weights, pairs))
        order = order[(low != high)[order]]
        pairs, starts = np.unique(pairs[order], return_index=True)
        sums = np.add.reduceat(weights[order], starts) if len(pairs) else np.zeros(0)
    return np.stack([pairs // num_nodes, pairs % num_nodes]), sums


def largest_of_both(edges: Tensor, weights: Tensor, undirected: Tensor, num_nodes: int) -> Tensor:
    """Returns the weights of undirected edges: the largest of each pair of nodes, per table.

    Args:
        edges: Edges, possibly in both directions. Shape: ``(2, E)``.
        weights: Their weights. Shape: ``(E, R)``.
        undirected: The same edges, sorted and in both directions. Shape: ``(2, E')``.
        num_nodes: Number of nodes.

    Returns:
        float64 ``(E', R)``.
    """
    pairs = torch.minimum(*edges) * num_nodes + torch.maximum(*edges)
    known, place = pairs.unique(return_inverse=True)
    largest = torch.zeros(len(known), weights.size(1), dtype=torch.float64)
    index = place[:, None].expand(-1, weights.size(1))
    largest.scatter_reduce_(0, index, weights.double(), "amax")
    wanted = torch.minimum(*undirected) * num_nodes + torch.maximum(*undirected)
    return largest[torch.searchsorted(known, wanted)]
