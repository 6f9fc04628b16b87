"""Sequences by personalized PageRank."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit

from dgt.config import SequenceConfig
from dgt.sequences.closeness import of_shares
from dgt.sequences.criterion import LINKS, Criterion, Graph, Sort
from dgt.sequences.hub_scores import STEPS, Hubs, hub_scores
from dgt.sequences.near import with_near
from dgt.sequences.push import sort_nodes
from dgt.sequences.tie_order import OrderedGraph
from dgt.sequences.top import insert
from dgt.system import threads
from dgt.system.progress import progress_bar

CHUNK = 1024
# Base nodes at a time in a large graph, where every thread needs buffers of N values.
LARGE_CHUNK = 8192
# Above this number of nodes, undirected graphs are sorted in single precision, with hubs.
EXACT_NODES = 12_000
HUBS = 48
COMMUNITIES = 128
# A hub has at least so many neighbors per node of a sequence. What it passes on to one of them is
# then too little to bring it into the sequence. A node with few neighbors must be pushed.
NEIGHBORS_PER_NODE = 16
# How many nodes are near a node, per node of a sequence, and at most.
NEAR_PER_NODE = 7
MOST_NEAR = 256
# Their scores may be coarser, by this factor of the tolerance.
NEAR_TOLERANCE = 2.0
LEAST_TOLERANCE = 1e-7  # in single precision
# Stands for the method of large graphs in the names of cached files. Increase it when they change.
VERSION = 5


def default_tolerance(length: int, hubs: bool = False) -> float:
    """The tolerance with which nearly all of the first ``length`` nodes are found.

    Shorter sequences hold nodes with larger scores, so the push can stop earlier. With hubs,
    more is known about the residuals that remain.
    """
    return (1.2e-3 if hubs else 3.2e-4) / length


def known_scores(graph: OrderedGraph, length: int, alpha: float, tolerance: float) -> Hubs:
    """Computes what the faster method of :func:`ppr_sequences` knows of a graph beforehand.

    Args:
        graph: An undirected graph.
        length: Length L of the sequences.
        alpha: Teleport probability.
        tolerance: Residual per edge from which on a node is pushed.
    """
    most = NEIGHBORS_PER_NODE * length
    with progress_bar("Scoring hubs for PageRank", STEPS) as advance:
        hubs = hub_scores(graph, HUBS, alpha, most, COMMUNITIES, advance)
    room = min(NEAR_PER_NODE * length, MOST_NEAR)
    with progress_bar("Scoring near nodes for PageRank", len(graph.nodes)) as advance:
        return with_near(graph, hubs, alpha, NEAR_TOLERANCE * tolerance, room, advance)


def ppr_sequences(
    graph: OrderedGraph,
    length: int,
    alpha: float,
    tolerance: float,
    advance: Callable[[int], None],
    bases: range | np.ndarray | None = None,
    back: OrderedGraph | None = None,
    hubs: Hubs | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""The nodes with the highest personalized PageRank of each base node,

    .. math::
        \boldsymbol{\pi}_b = \alpha \sum_{k \geq 0} (1 - \alpha)^k
        (\mathbf{A} \mathbf{D}^{-1})^k \mathbf{e}_b

    by descending score, ties by id. In a weighted graph, :math:`\mathbf{A}` holds the weights.
    The base node comes first, and unreachable nodes are left out.

    The scores come from forward push (Andersen, Chung and Lang, 2006): nodes pass their residual
    to their neighbors until no residual exceeds ``tolerance`` per edge. The residuals that remain,
    often half of the mass in a large graph, are not dropped. Their next step is computed exactly
    for the candidates, the nodes with the highest scores so far. The rest is distributed over the
    component in proportion to the degrees, the limit of a long random walk.

    In a directed graph, the walk follows the links, :math:`\mathbf{D}` holds the numbers of links,
    and the rest, whose limit is not known, is dropped. A walk that reaches a node without links
    starts again from the base node. This multiplies all scores by the same factor, so the order and
    the shares of the nodes are those of a walk that ends there, whose scores are returned.

    Args:
        graph: The graph. Neighbors in a directed graph are the nodes that a walk may step to.
        length: Length L of the sequences.
        alpha: Teleport probability.
        tolerance: Residual per edge from which on a node is pushed.
        advance: Called with the number of base nodes processed since the last call.
        bases: Ids of the base nodes (default: all N).
        back: For a directed graph, the same graph with all edges turned around.
        hubs: For an undirected graph, from :func:`known_scores`: the faster method of
            :func:`dgt.sequences.push.sort_nodes` then uses them.

    Returns:
        The nodes, int32 ``(N, L)``, padded with -1, and their scores, float32 ``(N, L)``.
    """
    undirected, back = back is None, graph if back is None else back
    tolerance = max(tolerance, 1e-15)  # float64 cannot resolve smaller residuals
    starts = graph.positions if bases is None else graph.positions[bases]
    sequences = np.full((len(starts), length), -1, dtype=np.int32)
    scores = np.zeros((len(starts), length), dtype=np.float32)
    chunk = CHUNK if hubs is None else LARGE_CHUNK
    for at in range(0, len(starts), chunk):
        part = slice(at, at + chunk)
        own, out = starts[part], (sequences[part], scores[part])
        if hubs is None:
            arguments = (graph, back, undirected, own, alpha, tolerance, *out)
            threads.run(_sort_nodes, len(own), *arguments)
        else:
            threads.run(sort_nodes, len(own), graph, hubs, own, alpha, tolerance, *out)
        advance(len(own))
    return sequences, scores


@njit(cache=True, nogil=True)
def _sort_nodes(  # type: ignore[no-untyped-def]
    thread, threads, graph, back, undirected, bases, alpha, tolerance, sequences, sequence_scores
):
    indptr, indices, degrees = back.indptr, back.indices, graph.degrees
    weights, weighted = back.weights, len(back.weights) > 0
    num_nodes = len(degrees)
    length = sequences.shape[1]
    # Buffers for all base nodes of this thread. Only touched nodes are reset.
    scores = np.zeros(num_nodes)
    residuals = np.zeros(num_nodes)
    touched = np.empty(num_nodes, np.int32)
    queue = np.empty(num_nodes, np.int32)
    near = np.empty(length + length // 2 + 8, np.int32)
    near_scores = np.empty(len(near))
    best = np.empty(length, np.int32)
    # Rounding makes equal scores tie, although their sums differ in the last bits.
    best_scores = np.empty(length, np.float32)
    for b in range(thread, len(bases), threads):
        base = bases[b]
        count, left = _push(graph, base, alpha, tolerance, scores, residuals, touched, queue)

        # Candidates, by the score so far, the residual, and the share of the rest.
        first, stop = graph.first[base], graph.stop[base]
        volume = graph.volumes[stop] - graph.volumes[first]
        per_edge = 0.0
        if undirected:
            per_edge = (1 - alpha) * left / (volume if volume > 0 else 1.0)
        filled = 0
        for i in range(count):
            node = touched[i]
            scores[node] += residuals[node] + per_edge * degrees[node]
            filled = insert(near, near_scores, filled, node, scores[node])
            # Share of each neighbor, per unit of weight.
            residuals[node] /= degrees[node] if degrees[node] > 0 else 1.0
        for node in range(first, stop if undirected else first):
            # Untouched nodes, by descending degree.
            if filled == len(near) and per_edge * degrees[node] < near_scores[filled - 1]:
                break
            if scores[node] == 0:
                filled = insert(near, near_scores, filled, node, per_edge * degrees[node])

        # The best candidates, after the next step of the residuals.
        base_score = np.float32(alpha)  # a lower bound
        kept = insert(best, best_scores, 0, graph.nodes[base], np.float32(np.inf))
        for i in range(filled):
            node = near[i]
            step = 0.0
            for e in range(indptr[node], indptr[node + 1]):
                step += residuals[indices[e]] * weights[e] if weighted else residuals[indices[e]]
            score = near_scores[i] + (1 - alpha) * step - alpha * per_edge * degrees[node]
            if node == base:
                base_score = np.float32(score)
            else:
                kept = insert(best, best_scores, kept, graph.nodes[node], np.float32(score))
        for i in range(kept):  # numba takes seconds to compile an assignment of slices
            sequences[b, i], sequence_scores[b, i] = best[i], best_scores[i]
        sequence_scores[b, 0] = base_score
        for i in range(count):
            scores[touched[i]] = 0
            residuals[touched[i]] = 0


@njit(cache=True, nogil=True)
def _push(  # type: ignore[no-untyped-def]
    graph, base, alpha, tolerance, scores, residuals, touched, queue
):
    """Pushes the mass of a base node.

    Returns:
        The number of touched nodes, and the mass that remains in the residuals.
    """
    indptr, indices, degrees = graph.indptr, graph.indices, graph.degrees
    weights, weighted = graph.weights, len(graph.weights) > 0
    limit = alpha * tolerance
    # The queue is a ring buffer. It holds each node at most once: a node enters when its residual
    # reaches the limit, and its residual is 0 when it leaves.
    head, waiting = 0, 1
    queue[0] = base
    touched[0] = base
    count = 1
    residuals[base] = alpha
    left = 1.0
    while waiting > 0:
        node = queue[head]
        head = head + 1 if head + 1 < len(queue) else 0
        waiting -= 1
        mass = residuals[node]
        residuals[node] = 0
        scores[node] += mass
        left -= mass
        share = (1 - alpha) * mass / (degrees[node] if degrees[node] > 0 else 1.0)
        for e in range(indptr[node], indptr[node + 1]):
            neighbor = indices[e]
            old = residuals[neighbor]
            new = old + (share * weights[e] if weighted else share)
            residuals[neighbor] = new
            if old == 0 and scores[neighbor] == 0:
                touched[count] = neighbor
                count += 1
            if old < limit * degrees[neighbor] <= new:
                tail = head + waiting
                queue[tail if tail < len(queue) else tail - len(queue)] = neighbor
                waiting += 1
    return count, max(left, 0.0)


def _tolerance(settings: SequenceConfig, hubs: bool = False) -> float:
    given = settings.ppr_tolerance
    return default_tolerance(settings.length, hubs) if given is None else given


def _uses_hubs(graph: Graph, settings: SequenceConfig) -> bool:
    return graph.num_nodes > EXACT_NODES and _tolerance(settings, True) >= LEAST_TOLERANCE


def _undirected(graph: Graph, settings: SequenceConfig, folder: Path | None) -> Sort:
    form, length, alpha = graph.weighted, settings.length, settings.ppr_alpha
    large = _uses_hubs(graph, settings)
    tolerance = _tolerance(settings, large)
    hubs = known_scores(form, length, alpha, tolerance) if large else None
    return lambda bases, advance: ppr_sequences(
        form, length, alpha, tolerance, advance, bases, hubs=hubs
    )


def _method(graph: Graph, settings: SequenceConfig) -> tuple[object, ...]:
    return ("hubs", VERSION) if _uses_hubs(graph, settings) else ()


def _facts(settings: SequenceConfig) -> tuple[object, ...]:
    return settings.ppr_alpha, _tolerance(settings)


def _along_links(
    graphs: Callable[[Graph], tuple[OrderedGraph, OrderedGraph]],
) -> Criterion:
    """A criterion by PageRank on a directed graph and its reverse."""

    def begin(graph: Graph, settings: SequenceConfig, folder: Path | None) -> Sort:
        form, back = graphs(graph)
        length, alpha, tolerance = settings.length, settings.ppr_alpha, _tolerance(settings)
        return lambda bases, advance: ppr_sequences(
            form, length, alpha, tolerance, advance, bases, back
        )

    return Criterion(begin=begin, settings=_facts, reads=LINKS, closeness=of_shares)


PPR = Criterion(
    begin=_undirected,
    settings=_facts,
    method=_method,
    reads=("edge_index", "edge_weights"),
    closeness=of_shares,
    tuned=True,
)
PPR_OUT = _along_links(lambda graph: (graph.weighted_out, graph.weighted_into))
PPR_IN = _along_links(lambda graph: (graph.weighted_into, graph.weighted_out))
