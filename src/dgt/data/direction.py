"""The directed edges of a graph.

``data.edge_index`` of a normalized graph holds every edge in both directions. A graph whose edges
are known to be directed also has ``data.directed_edge_index``, int64 ``(2, E)``: its edges from
source to target, sorted, without duplicates and self-loops; and, if its edges have weights or come
from several tables, ``data.directed_edge_weights``, as in :mod:`dgt.data.edge_tables`.
"""

from typing import Literal

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.tensors import plain
from dgt.errors import InputError

DIRECTED, DIRECTED_WEIGHTS = "directed_edge_index", "directed_edge_weights"

Direction = Literal["out", "in"]


def is_directed(data: Data) -> bool:
    """Returns whether the direction of a graph's edges is known."""
    return data.get(DIRECTED) is not None


def require_direction(data: Data, what: str) -> None:
    """Raises an error that ``what`` needs directed edges, unless the graph has them."""
    if not is_directed(data):
        raise InputError(
            f"{data.get('name') or 'graph'}: {what} needs directed edges, but the direction of the "
            "edges is not known; if they are directed, read the graph with --directed (in Python "
            "directed=True, or set data.directed_edge_index)"
        )


def distinct(edges: Tensor, weights: Tensor | None, num_nodes: int) -> tuple[Tensor, Tensor | None]:
    """Returns sorted directed edges without duplicates and self-loops, and their weights.

    Args:
        edges: Edges from source to target. Shape: ``(2, E)``.
        weights: Their weights; of equal edges, the largest one counts. Shape: ``(E, R)``.
        num_nodes: Number of nodes.
    """
    other = edges[0] != edges[1]
    pairs = (edges[0] * num_nodes + edges[1])[other]
    if weights is None:
        pairs = pairs.unique()
    else:
        pairs, place = pairs.unique(return_inverse=True)
        index = place[:, None].expand(-1, weights.size(1))
        largest = torch.zeros(len(pairs), weights.size(1), dtype=torch.float64)
        weights = largest.scatter_reduce_(0, index, weights[other].double(), "amax")
    return torch.stack([pairs // num_nodes, pairs % num_nodes]), weights


def directed_weights(data: Data) -> Tensor | None:
    """Returns the sum of each directed edge's weights over all tables, scaled to mean 1; None if no
    table has weights. Shape: ``(E,)``, float64."""
    weights = data.get(DIRECTED_WEIGHTS)
    if weights is None or bool(((weights == 0) | (weights == 1)).all()):
        return None
    sums = weights.sum(dim=1)
    return sums / sums.mean()


def directed_adjacency(data: Data, direction: Direction = "out") -> scipy.sparse.csr_array:
    """Returns :func:`link_matrix` of the directed edges of a graph, without weights."""
    require_direction(data, f"the matrix of {direction}-links")
    return link_matrix(data[DIRECTED], data.num_nodes, direction)


def weighted_directed_adjacency(data: Data, direction: Direction = "out") -> scipy.sparse.csr_array:
    """Like :func:`directed_adjacency`, with the weights of the edges, whose mean is 1."""
    require_direction(data, f"the matrix of {direction}-links")
    return link_matrix(data[DIRECTED], data.num_nodes, direction, directed_weights(data))


def link_matrix(
    edges: Tensor, num_nodes: int, direction: Direction, weights: Tensor | None = None
) -> scipy.sparse.csr_array:
    """Returns the adjacency matrix of directed edges without self-loops, shape ``(N, N)``.

    Column indices are sorted.

    Args:
        edges: Edges from source to target. Shape: ``(2, E)``.
        num_nodes: Number of nodes N.
        direction: ``"out"``: a row holds the nodes that its node links to. ``"in"``: those that
            link to it.
        weights: Weight of each edge (default: all values are 1). Shape: ``(E,)``.
    """
    edges = plain(edges, DIRECTED)
    if edges.dim() != 2 or edges.size(0) != 2 or edges.dtype != torch.int64:
        shown = f"{str(edges.dtype).removeprefix('torch.')} {tuple(edges.shape)}"
        raise InputError(f"{DIRECTED}: got {shown}, expected integers of shape (2, E)")
    if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= num_nodes):
        raise InputError(f"{DIRECTED}: expected nodes from 0 to {num_nodes - 1}")
    source, target = edges.numpy()
    other = source != target
    values = np.ones(len(source)) if weights is None else weights.cpu().numpy()
    ends = (source[other], target[other])
    matrix = scipy.sparse.csr_array((values[other], ends), shape=(num_nodes, num_nodes))
    if weights is None:
        matrix.data[:] = 1  # duplicates were added up
    if direction == "in":
        matrix = matrix.T.tocsr()
    matrix.sort_indices()
    return matrix
