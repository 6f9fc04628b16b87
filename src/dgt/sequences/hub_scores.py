"""PageRank of the hubs and the communities of a graph, for every base node."""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from dgt.sequences.communities import communities
from dgt.sequences.tie_order import OrderedGraph
from dgt.storage.segments import Advance
from dgt.system import threads

# Steps of the Chebyshev iteration, at most. For alpha = 0.15, the error falls by 0.56 with each
# step, or faster where a walk soon forgets its start; below LEFT, no more steps are taken.
STEPS = 14
LEFT = 3e-4
# Steps of the walk that shows how fast it forgets, and what is added, since it shows too little.
WALK = 24
MARGIN = 0.03


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
        advance: Called with the number of the ``STEPS`` steps that were taken or are not needed.
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
    sizes = graph.stop - graph.first
    main = int(graph.first[np.argmax(sizes)]) if N else 0
    stop = int(graph.stop[main]) if N else 0
    before = scores.copy()
    for first, end in ((0, main), (stop, N)):
        _iterate(graph, column, alpha, 1 - alpha, STEPS, first, end, scores, before)
    # The start is the limit of a long walk, so only what a walk forgets is wrong in it.
    radius = (1 - alpha) * min(1.0, forgetting(graph, main, stop) + MARGIN)
    steps = min(STEPS, math.ceil(math.log(LEFT) / math.log(rate(radius))))
    advance(STEPS - steps)
    _iterate(graph, column, alpha, radius, steps, main, stop, scores, before, advance)
    del before
    volumes = np.bincount(column[main:stop], graph.degrees[main:stop], H + groups)
    mean = np.zeros((H + groups, H + groups))
    _add_scores(graph, column, scores, main, stop, mean)
    mean /= np.where(volumes > 0, volumes, 1)[:, None]
    mean[np.arange(H, H + groups), np.arange(H, H + groups)] -= alpha
    mean = np.ascontiguousarray(np.maximum(mean, 0).T, dtype=np.float32)
    near, values = np.zeros((N, 0), dtype=np.uint32), np.zeros((N, 0), dtype=np.float32)
    return Hubs(nodes, column.astype(np.uint8), scores, volumes, mean, main, near, values)


def rate(radius: float) -> float:
    """Returns the factor by which a step of the Chebyshev iteration reduces errors, which a step
    of a walk reduces by up to ``radius``."""
    return radius / (1 + math.sqrt(1 - radius**2))


def forgetting(graph: OrderedGraph, first: int, stop: int) -> float:
    """Returns the factor by which a walk in a component forgets its start with each step: the
    largest absolute eigenvalue of the walk but that of its limit, from below.

    Args:
        graph: An undirected graph.
        first: First position of the component.
        stop: End (exclusive) of the component.
    """
    degrees = graph.degrees[first:stop]
    share = degrees / max(degrees.sum(), 1e-300)
    x, y = np.zeros(len(graph.nodes)), np.zeros(len(graph.nodes))
    x[first:stop] = np.random.default_rng(0).standard_normal(stop - first)
    size = factor = 0.0
    for _ in range(WALK):
        x[first:stop] -= (share * x[first:stop]).sum()
        before, size = size, math.sqrt((share * x[first:stop] ** 2).sum())
        if size == 0:  # at most two nodes, or a whole graph of all edges and loops
            return 0.0
        factor = size / before if before else 1.0
        threads.run(_walk, stop - first, graph, first, stop, x, y)
        x, y = y, x
    return factor


def _iterate(  # type: ignore[no-untyped-def]
    graph, column, alpha, radius, steps, first, stop, scores, before, advance=lambda done: None
):
    """Takes steps of the Chebyshev iteration for a range of positions, whole components."""
    new, old = scores, before
    omega = 1.0
    for step in range(steps if stop > first else 0):
        arguments = (graph, first, stop, column, alpha, omega, new, old)
        threads.run(_step, stop - first, *arguments)
        new, old = old, new
        omega = 1 / (1 - radius**2 / 2) if step == 0 else 1 / (1 - radius**2 * omega / 4)
        advance(1)
    if new is not scores:
        scores[first:stop] = new[first:stop]


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
def _step(  # type: ignore[no-untyped-def]
    thread, threads, graph, first, stop, column, alpha, omega, scores, before
):
    """Replaces the scores before the last step by those after the next."""
    indptr, indices, degrees = graph.indptr, graph.indices, graph.degrees
    weights, weighted = graph.weights, len(graph.weights) > 0
    total = np.empty(scores.shape[1], np.float32)
    # In turn, as the first nodes have the most edges.
    for base in range(first + thread, stop, threads):
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
def _walk(thread, threads, graph, first, stop, x, y):  # type: ignore[no-untyped-def]
    """Replaces the value of each node in ``y`` by the mean of those of its neighbors in ``x``."""
    indptr, indices, weighted = graph.indptr, graph.indices, len(graph.weights) > 0
    for node in range(first + thread, stop, threads):
        total = 0.0
        for e in range(indptr[node], indptr[node + 1]):
            total += graph.weights[e] * x[indices[e]] if weighted else x[indices[e]]
        y[node] = total / graph.degrees[node] if graph.degrees[node] > 0 else 0.0


@njit(cache=True, nogil=True)
def _add_scores(graph, column, scores, first, stop, mean):  # type: ignore[no-untyped-def]
    """Adds the scores of the nodes of a column, weighted by degree."""
    for node in range(first, stop):
        own = mean[column[node]]
        degree = graph.degrees[node]
        for c in range(scores.shape[1]):
            own[c] += degree * scores[node, c]
