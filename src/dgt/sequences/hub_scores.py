"""PageRank of the hubs and the communities of a graph, for every base node."""

from typing import NamedTuple

import numpy as np
from numba import njit

from dgt.sequences.communities import communities
from dgt.sequences.tie_order import OrderedGraph
from dgt.storage.segments import Advance
from dgt.system import threads

# Steps of the Chebyshev iteration. For alpha = 0.15, the error falls by 0.56 with each step.
STEPS = 14


class Hubs(NamedTuple):
    """The nodes of highest degree, and communities of the other nodes.

    Every node has a column: a hub has its own, the other nodes share that of their community.
    """

    nodes: np.ndarray  # int32 (H,), positions of the hubs
    column: np.ndarray  # uint8 (N,), column of each position; below H for hubs
    scores: np.ndarray  # float32 (N, H + C), PageRank of each column's nodes, by base node
    volumes: np.ndarray  # float64 (H + C,), sum of the degrees of each column's nodes
    mean: np.ndarray  # float32 (H + C, H + C), mean scores of a column (row) over those of another
    main: int  # first position of the largest component, of which volumes and mean are
    near: np.ndarray  # uint32 (N, K), nodes near each node, see with_near
    values: np.ndarray  # float32 (N, K), their scores by their degrees; 0 in the padding


def hub_scores(
    graph: OrderedGraph,
    count: int,
    alpha: float,
    neighbors: int = 0,
    groups: int = 1,
    advance: Advance = lambda done: None,
) -> Hubs:
    r"""Computes the personalized PageRank of hubs and of whole communities for every base node.

    The scores of a base node are the mean of those of its neighbors,

    .. math::
        \boldsymbol{\pi}_b = \alpha \mathbf{e}_b + \frac{1 - \alpha}{d_b} \sum_{k \in \mathcal{N}_b}
        w_{bk} \boldsymbol{\pi}_k

    so that a few columns can be computed for all base nodes at once, by Chebyshev iteration.

    Args:
        graph: An undirected graph.
        count: Largest number of hubs H.
        alpha: Teleport probability.
        neighbors: Number of neighbors from which on a node is a hub.
        groups: Number of communities C.
        advance: Called after each of the ``STEPS`` steps.
    """
    N = len(graph.nodes)
    nodes = np.sort(np.argsort(-graph.degrees, kind="stable")[:count]).astype(np.int32)
    nodes = nodes[np.diff(graph.indptr)[nodes] >= neighbors]
    H = len(nodes)
    if H + groups > 256:
        raise ValueError(f"hubs and communities: got {H} and {groups}, expected at most 256")
    column = H + communities(graph, groups)
    column[nodes] = np.arange(H, dtype=np.int32)
    scores = np.empty((N, H + groups), dtype=np.float32)
    _start(graph, column, scores)
    before = scores.copy()
    omega, radius = 1.0, 1 - alpha
    for step in range(STEPS):
        threads.run(_step, N, graph, column, alpha, omega, scores, before)
        scores, before = before, scores
        omega = 1 / (1 - radius**2 / 2) if step == 0 else 1 / (1 - radius**2 * omega / 4)
        advance(1)
    del before
    sizes = graph.stop - graph.first
    main = int(graph.first[np.argmax(sizes)]) if N else 0
    stop = int(graph.stop[main]) if N else 0
    volumes = np.bincount(column[main:stop], graph.degrees[main:stop], H + groups)
    mean = np.zeros((H + groups, H + groups))
    _add_scores(graph, column, scores, main, stop, mean)
    mean /= np.where(volumes > 0, volumes, 1)[:, None]
    mean[np.arange(H, H + groups), np.arange(H, H + groups)] -= alpha
    mean = np.ascontiguousarray(np.maximum(mean, 0).T, dtype=np.float32)
    near, values = np.zeros((N, 0), dtype=np.uint32), np.zeros((N, 0), dtype=np.float32)
    return Hubs(nodes, column.astype(np.uint8), scores, volumes, mean, main, near, values)


@njit(cache=True, nogil=True)
def _start(graph, column, scores):  # type: ignore[no-untyped-def]
    """Starts from the limit of a long walk."""
    N, columns = scores.shape
    row = np.empty(columns)
    node = 0
    while node < N:
        first, stop = graph.first[node], graph.stop[node]
        volume = graph.volumes[stop] - graph.volumes[first]
        row[:] = 0
        for member in range(first, stop):
            row[column[member]] += graph.degrees[member] / (volume if volume > 0 else 1.0)
        for member in range(first, stop):
            for c in range(columns):
                scores[member, c] = row[c]
        node = stop


@njit(cache=True, nogil=True)
def _step(thread, threads, graph, column, alpha, omega, scores, before):  # type: ignore[no-untyped-def]
    """Replaces the scores before the last step by those after the next."""
    indptr, indices, degrees = graph.indptr, graph.indices, graph.degrees
    weights, weighted = graph.weights, len(graph.weights) > 0
    total = np.empty(scores.shape[1], np.float32)
    # In turn, as the first nodes have the most edges.
    for base in range(thread, len(degrees), threads):
        total[:] = 0
        for e in range(indptr[base], indptr[base + 1]):
            row = scores[indices[e]]
            weight = np.float32(weights[e]) if weighted else np.float32(1)
            for c in range(len(total)):
                total[c] += weight * row[c]
        factor = np.float32((1 - alpha) / (degrees[base] if degrees[base] > 0 else 1.0))
        own = before[base]
        for c in range(len(total)):
            own[c] += np.float32(omega) * (factor * total[c] - own[c])
        own[column[base]] += np.float32(omega * alpha)


@njit(cache=True, nogil=True)
def _add_scores(graph, column, scores, first, stop, mean):  # type: ignore[no-untyped-def]
    """Adds the scores of the nodes of a column, weighted by degree."""
    for node in range(first, stop):
        own = mean[column[node]]
        degree = graph.degrees[node]
        for c in range(scores.shape[1]):
            own[c] += degree * scores[node, c]
