"""Sequences by personalized PageRank."""

from collections.abc import Callable

import numpy as np
from numba import njit

from dgt import threads
from dgt.sequences.ranked import RankedGraph
from dgt.sequences.top import insert

CHUNK = 1024


def default_tolerance(length: int) -> float:
    """Of the first nodes of a sequence nearly all are found with it: the fewer they are, the larger
    are their scores, and the sooner a push can stop."""
    return 3.2e-4 / length


def ppr_sequences(
    graph: RankedGraph,
    length: int,
    alpha: float,
    tolerance: float,
    advance: Callable[[int], None],
    bases: range | np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Each node's best nodes by personalized PageRank,

    .. math::
        \boldsymbol{\pi}_b = \alpha \sum_{k \geq 0} (1 - \alpha)^k
        (\mathbf{A} \mathbf{D}^{-1})^k \mathbf{e}_b

    by descending score, ties by id; the base node comes first, nodes it cannot reach are left out.

    The scores come from forward push (Andersen, Chung and Lang, 2006), which hands on the mass of
    a node to its neighbours until none holds more than ``tolerance`` for each of its edges. What
    is then left unpushed, often half of the mass in a large graph, is not dropped: its next step is
    counted exactly for the nodes near the top, and the rest of its way is taken to end anywhere
    in the component, by degree, as a long walk does.

    Args:
        graph: the graph.
        length: nodes kept, L.
        alpha: probability of going back to the base node.
        tolerance: mass for each edge of a node from which on it is pushed.
        advance: called with the number of base nodes done since the last call.
        bases: ids of the base nodes, by default all N.

    Returns:
        The nodes, int32 [N, L], padded with -1, and their scores, float32 [N, L].
    """
    tolerance = max(tolerance, 1e-15)  # below, float64 has nothing left to push
    ranks = graph.ranks if bases is None else graph.ranks[bases]
    sequences = np.full((len(ranks), length), -1, dtype=np.int32)
    scores = np.zeros((len(ranks), length), dtype=np.float32)
    for start in range(0, len(ranks), CHUNK):
        part = slice(start, start + CHUNK)
        own, out = ranks[part], (sequences[part], scores[part])
        threads.run(_sort_nodes, len(own), graph, own, alpha, tolerance, *out)
        advance(len(own))
    return sequences, scores


@njit(cache=True, nogil=True)
def _sort_nodes(  # type: ignore[no-untyped-def]
    thread, threads, graph, bases, alpha, tolerance, sequences, sequence_scores
):
    indptr, indices, degrees = graph.indptr, graph.indices, graph.degrees
    num_nodes = len(degrees)
    length = sequences.shape[1]
    # One scratch for all base nodes of this thread: only touched nodes are ever reset.
    scores = np.zeros(num_nodes)
    residuals = np.zeros(num_nodes)
    touched = np.empty(num_nodes, np.int32)
    queue = np.empty(num_nodes, np.int32)
    near = np.empty(length + length // 2 + 8, np.int32)
    near_scores = np.empty(len(near))
    best = np.empty(length, np.int32)
    best_scores = np.empty(length, np.float32)  # rounded: equal scores tie though sums differ
    for b in range(thread, len(bases), threads):
        base = bases[b]
        count, left = _push(graph, base, alpha, tolerance, scores, residuals, touched, queue)

        # Near the top: by what was pushed, what waits, and what the rest may bring.
        first, stop = graph.first[base], graph.stop[base]
        per_edge = (1 - alpha) * left / max(indptr[stop] - indptr[first], 1)
        filled = 0
        for i in range(count):
            node = touched[i]
            scores[node] += residuals[node] + per_edge * degrees[node]
            filled = insert(near, near_scores, filled, node, scores[node])
            residuals[node] /= max(degrees[node], 1)  # what each neighbour gets next
        for node in range(first, stop):  # untouched ones, by descending degree
            if filled == len(near) and per_edge * degrees[node] < near_scores[filled - 1]:
                break
            if scores[node] == 0:
                filled = insert(near, near_scores, filled, node, per_edge * degrees[node])

        # The best of these, with the next step of what waits.
        base_score = np.float32(alpha)  # at least
        kept = insert(best, best_scores, 0, graph.nodes[base], np.float32(np.inf))
        for i in range(filled):
            node = near[i]
            step = 0.0
            for e in range(indptr[node], indptr[node + 1]):
                step += residuals[indices[e]]
            score = near_scores[i] + (1 - alpha) * step - alpha * per_edge * degrees[node]
            if node == base:
                base_score = np.float32(score)
            else:
                kept = insert(best, best_scores, kept, graph.nodes[node], np.float32(score))
        sequences[b, :kept] = best[:kept]
        sequence_scores[b, :kept] = best_scores[:kept]
        sequence_scores[b, 0] = base_score
        for i in range(count):
            scores[touched[i]] = 0
            residuals[touched[i]] = 0


@njit(cache=True, nogil=True)
def _push(  # type: ignore[no-untyped-def]
    graph, base, alpha, tolerance, scores, residuals, touched, queue
):
    """Pushes a base node's mass; the number of nodes touched and the share of mass left."""
    indptr, indices, degrees = graph.indptr, graph.indices, graph.degrees
    limit = alpha * tolerance
    # The queue is a ring. A node is in it at most once: it enters when its residual reaches the
    # limit, and its residual is 0 when it leaves.
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
        share = (1 - alpha) * mass / max(degrees[node], 1)
        for e in range(indptr[node], indptr[node + 1]):
            neighbour = indices[e]
            old = residuals[neighbour]
            new = old + share
            residuals[neighbour] = new
            if old == 0 and scores[neighbour] == 0:
                touched[count] = neighbour
                count += 1
            if old < limit * degrees[neighbour] <= new:
                tail = head + waiting
                queue[tail if tail < len(queue) else tail - len(queue)] = neighbour
                waiting += 1
    return count, max(left, 0.0)
