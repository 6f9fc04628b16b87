"""Groups the nodes of a graph into communities, by label propagation."""

import numpy as np
from numba import njit

from dgt.sequences.tie_order import OrderedGraph

SWEEPS = 8
# No community may hold more than this multiple of the mean number of edges.
LARGEST = 3.0


def communities(graph: OrderedGraph, count: int) -> np.ndarray:
    """Groups nodes such that most neighbors of a node are in its own group, as far as possible.

    The nodes of highest degree are the first members of a community each. In every sweep, a node
    joins the community of most of its neighbors, unless this is full (Raghavan, Albert and Kumara,
    2007, with bounded sizes). One node is moved after the other, on one thread, so that the result
    is always the same.

    Args:
        graph: An undirected graph.
        count: Largest number of communities C.

    Returns:
        The community of each position, from 0 to C - 1, int32 ``(N,)``. Nodes that no community
        has reached are in the first one.
    """
    seeds = np.argsort(-graph.degrees, kind="stable")[:count].astype(np.int32)
    labels = np.full(len(graph.degrees), -1, dtype=np.int32)
    labels[seeds] = np.arange(len(seeds), dtype=np.int32)
    largest = LARGEST * graph.volumes[-1] / max(count, 1)
    fixed = labels >= 0
    for _ in range(SWEEPS if count > 1 else 0):
        _sweep(graph, labels, fixed, count, largest)
    return np.maximum(labels, 0)


@njit(cache=True, nogil=True)
def _sweep(graph, labels, fixed, count, largest):  # type: ignore[no-untyped-def]
    indptr, indices, degrees = graph.indptr, graph.indices, graph.degrees
    weights, weighted = graph.weights, len(graph.weights) > 0
    sizes = np.zeros(count)
    for node in range(len(degrees)):
        if labels[node] >= 0 and not fixed[node]:
            sizes[labels[node]] += degrees[node]
    votes = np.empty(count)
    for node in range(len(degrees)):
        if fixed[node]:
            continue
        votes[:] = 0
        for e in range(indptr[node], indptr[node + 1]):
            label = labels[indices[e]]
            if label >= 0:
                votes[label] += weights[e] if weighted else 1.0
        own = labels[node]
        best, most = own, votes[own] if own >= 0 else 0.0
        for label in range(count):
            if votes[label] > most and sizes[label] + degrees[node] <= largest:
                best, most = label, votes[label]
        if best != own:
            if own >= 0:
                sizes[own] -= degrees[node]
            sizes[best] += degrees[node]
            labels[node] = best
