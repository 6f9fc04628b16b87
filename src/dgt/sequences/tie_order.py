"""Renumbers the nodes of a graph in the order that breaks ties."""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components


class OrderedGraph(NamedTuple):
    """A graph whose nodes are ordered by component, descending degree and id. In a weighted graph,
    the degree of a node is the sum of its edges' weights.

    Within a component, nodes of higher degree have lower positions, so a sorted list of neighbors
    starts with the hubs. The hubs, which are read most often, are also adjacent in memory.
    """

    indptr: np.ndarray  # int32 or int64 (N + 1,), by position
    indices: np.ndarray  # uint32 (2E,), sorted positions of the neighbors
    weights: np.ndarray  # float64 (2E,), of the edges to the neighbors; (0,) without weights
    degrees: np.ndarray  # float64 (N,), by position
    volumes: np.ndarray  # float64 (N + 1,), sums of the degrees before each position
    nodes: np.ndarray  # int32 (N,), id of each position
    positions: np.ndarray  # int32 (N,), position of each id
    first: np.ndarray  # int32 (N,), first position of the component of each position
    stop: np.ndarray  # int32 (N,), end (exclusive) of the component of each position


def order_nodes(adjacency: scipy.sparse.csr_array, rank: np.ndarray | None = None) -> OrderedGraph:
    """Orders the nodes of a graph.

    Args:
        adjacency: Adjacency matrix with the weights of the edges; if all of them are 1, the graph
            has no weights. Directed edges lead from rows to columns; ``degrees`` and ``volumes``
            then count out-links, and components are weakly connected. Shape: ``(N, N)``.
        rank: Values to order nodes by, descending (default: the degrees). Shape: ``(N,)``.
    """
    weighted = bool((adjacency.data != 1).any())
    degrees = adjacency.sum(axis=1) if weighted else np.diff(adjacency.indptr)
    _, component = connected_components(adjacency, directed=False)
    nodes = np.lexsort((-(degrees if rank is None else rank), component)).astype(np.int32)
    ordered = adjacency[nodes][:, nodes]
    ordered.sort_indices()
    positions = np.empty_like(nodes)
    positions[nodes] = np.arange(len(nodes), dtype=np.int32)
    sizes = np.bincount(component)
    stop = np.repeat(np.cumsum(sizes), sizes).astype(np.int32)
    first = stop - np.repeat(sizes, sizes).astype(np.int32)
    own = degrees[nodes].astype(np.float64)
    return OrderedGraph(
        indptr=ordered.indptr,
        indices=ordered.indices.astype(np.uint32),
        weights=ordered.data.astype(np.float64) if weighted else np.empty(0),
        degrees=own,
        volumes=np.concatenate([[0.0], np.cumsum(own)]),
        nodes=nodes,
        positions=positions,
        first=first,
        stop=stop,
    )
