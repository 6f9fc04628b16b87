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


def directed_adjacency(data: Data, direction: Direction = "out") -> scipy.sparse.csr_array:
    """Returns the adjacency matrix of the directed edges without self-loops, shape ``(N, N)``.

    Column indices are sorted. All values are 1.

    Args:
        data: A graph with directed edges.
        direction: ``"out"``: a row holds the nodes that its node links to. ``"in"``: those that
            link to it.
    """
    return _matrix(data, direction, None)


def weighted_directed_adjacency(data: Data, direction: Direction = "out") -> scipy.sparse.csr_array:
    """Like :func:`directed_adjacency`, with the weights of the edges, whose mean is 1."""
    weights = data.get(DIRECTED_WEIGHTS)
    if weights is None or bool(((weights == 0) | (weights == 1)).all()):
        return _matrix(data, direction, None)
    sums = weights.sum(dim=1)
    return _matrix(data, direction, (sums / sums.mean()).cpu().numpy())


def _matrix(data: Data, direction: Direction, values: np.ndarray | None) -> scipy.sparse.csr_array:
    require_direction(data, f"{direction}-links")
    N = data.num_nodes
    edges = plain(data[DIRECTED], DIRECTED)
    if edges.dim() != 2 or edges.size(0) != 2 or edges.dtype != torch.int64:
        shown = f"{str(edges.dtype).removeprefix('torch.')} {tuple(edges.shape)}"
        raise InputError(f"{DIRECTED}: got {shown}, expected integers of shape (2, E)")
    if edges.numel() and (int(edges.min()) < 0 or int(edges.max()) >= N):
        raise InputError(f"{DIRECTED}: expected nodes from 0 to {N - 1}")
    source, target = edges.numpy()
    other = source != target
    values = np.ones(len(source)) if values is None else values
    plainly = bool((values == 1).all())
    matrix = scipy.sparse.csr_array((values[other], (source[other], target[other])), shape=(N, N))
    if plainly:
        matrix.data[:] = 1  # duplicates were added up
    if direction == "in":
        matrix = matrix.T.tocsr()
    matrix.sort_indices()
    return matrix
