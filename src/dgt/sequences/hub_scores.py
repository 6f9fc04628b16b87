"""PageRank of the hubs of a graph, for every base node."""

from typing import NamedTuple

import numpy as np
from numba import njit

from dgt.sequences.tie_order import OrderedGraph
from dgt.system import threads

# Steps of the Chebyshev iteration. For alpha = 0.15, the error falls by 0.56 with each step.
STEPS = 14


class Hubs(NamedTuple):
    """The nodes of highest degree."""

    nodes: np.ndarray  # int32 (H,), their positions
    place: np.ndarray  # int32 (N,), place of a position among the hubs, or -1
    scores: np.ndarray  # float32 (N, H), PageRank of each hub, by base node


def hub_scores(graph: OrderedGraph, count: int, alpha: float, neighbors: int = 0) -> Hubs:
    r"""Computes the personalized PageRank of hubs for every base node.

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
    """
    N = len(graph.nodes)
    nodes = np.sort(np.argsort(-graph.degrees, kind="stable")[:count]).astype(np.int32)
    nodes = nodes[np.diff(graph.indptr)[nodes] >= neighbors]
    place = np.full(N, -1, dtype=np.int32)
    place[nodes] = np.arange(len(nodes), dtype=np.int32)
    # The start is the limit of a long walk.
    scores = np.zeros((N, len(nodes)), dtype=np.float32)
    for h, node in enumerate(nodes):
        first, stop = graph.first[node], graph.stop[node]
        volume = graph.volumes[stop] - graph.volumes[first]
        scores[first:stop, h] = graph.degrees[node] / max(volume, 1.0)
    before = scores.copy()
    omega, radius = 1.0, 1 - alpha
    for step in range(STEPS if len(nodes) else 0):
        threads.run(_step, N, graph, nodes, place, alpha, omega, scores, before)
        scores, before = before, scores
        omega = 1 / (1 - radius**2 / 2) if step == 0 else 1 / (1 - radius**2 * omega / 4)
    return Hubs(nodes, place, np.maximum(scores, 0))


@njit(cache=True, nogil=True)
def _step(  # type: ignore[no-untyped-def]
    thread, threads, graph, hubs, place, alpha, omega, scores, before
):
    """Replaces the scores before the last step by those after the next."""
    indptr, indices, degrees = graph.indptr, graph.indices, graph.degrees
    weights, weighted = graph.weights, len(graph.weights) > 0
    total = np.empty(len(hubs), np.float32)
    part = -(-len(degrees) // threads)
    for base in range(thread * part, min(len(degrees), (thread + 1) * part)):
        total[:] = 0
        for e in range(indptr[base], indptr[base + 1]):
            row = scores[indices[e]]
            weight = np.float32(weights[e]) if weighted else np.float32(1)
            for h in range(len(total)):
                total[h] += weight * row[h]
        factor = np.float32((1 - alpha) / (degrees[base] if degrees[base] > 0 else 1.0))
        own = before[base]
        for h in range(len(total)):
            own[h] += np.float32(omega) * (factor * total[h] - own[h])
        if place[base] >= 0:
            own[place[base]] += np.float32(omega * alpha)
