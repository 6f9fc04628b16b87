"""Sequences by personalized PageRank."""

from collections.abc import Callable

import numpy as np
from numba import njit

from dgt import threads
from dgt.sequences.ranked import RankedGraph
from dgt.sequences.top import insert

CHUNK = 1024
# What a node has while mass is pushed through the graph.
RESIDUAL, THRESHOLD, SCORE = 0, 1, 2


def ppr_sequences(
    graph: RankedGraph,
    length: int,
    alpha: float,
    tolerance: float,
    advance: Callable[[int], None],
    bases: np.ndarray | None = None,
) -> np.ndarray:
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
        int32 [N, L], padded with -1.
    """
    tolerance = max(tolerance, 1e-15)  # below, float64 has nothing left to push
    if bases is None:
        bases = np.arange(len(graph.nodes))
    sequences = np.full((len(bases), length), -1, dtype=np.int32)
    for start in range(0, len(bases), CHUNK):
        part = slice(start, start + CHUNK)
        ranks = graph.ranks[bases[part]]
        threads.run(_sort_nodes, len(ranks), graph, ranks, alpha, tolerance, sequences[part])
        advance(len(ranks))
    return sequences


@njit(cache=True, nogil=True)
def _sort_nodes(  # type: ignore[no-untyped-def]
    thread, threads, graph, bases, alpha, tolerance, sequences
):
    indptr, indices = graph.indptr, graph.indices
    num_nodes = len(graph.nodes)
    length = sequences.shape[1]
    # One scratch for all base nodes of this thread: only touched nodes are ever reset.
    state = np.zeros((num_nodes, 3))
    for node in range(num_nodes):
        state[node, THRESHOLD] = alpha * tolerance * max(indptr[node + 1] - indptr[node], 1)
    touched = np.empty(num_nodes, np.int32)
    queue = np.empty(num_nodes, np.int32)
    near = np.empty(length + length // 2 + 8, np.int32)
    near_scores = np.empty(len(near))
    best = np.empty(length, np.int32)
    best_scores = np.empty(length, np.float32)  # rounded: equal scores tie though sums differ
    for b in range(thread, len(bases), threads):
        base = bases[b]
        count, left = _push(graph, base, alpha, state, touched, queue)

        # Near the top: by what was pushed, what waits, and what the rest may bring.
        first, stop = graph.first[base], graph.stop[base]
        per_edge = (1 - alpha) * left / max(indptr[stop] - indptr[first], 1)
        filled = 0
        for i in range(count):
            node = touched[i]
            degree = max(indptr[node + 1] - indptr[node], 1)
            score = state[node, SCORE] + state[node, RESIDUAL] + per_edge * degree
            filled = insert(near, near_scores, filled, node, score)
            state[node, SCORE] = score
            state[node, RESIDUAL] /= degree  # what each neighbour gets next
        for node in range(first, stop):  # untouched ones, by descending degree
            score = per_edge * (indptr[node + 1] - indptr[node])
            if filled == len(near) and score < near_scores[filled - 1]:
                break
            if state[node, SCORE] == 0:
                filled = insert(near, near_scores, filled, node, score)

        # The best of these, with the next step of what waits.
        kept = insert(best, best_scores, 0, graph.nodes[base], np.float32(np.inf))
        for i in range(filled):
            node = near[i]
            if node != base:
                step = -alpha / (1 - alpha) * per_edge * (indptr[node + 1] - indptr[node])
                for e in range(indptr[node], indptr[node + 1]):
                    step += state[indices[e], RESIDUAL]
                score = np.float32(near_scores[i] + (1 - alpha) * step)
                kept = insert(best, best_scores, kept, graph.nodes[node], score)
        sequences[b, :kept] = best[:kept]
        for i in range(count):
            state[touched[i], RESIDUAL] = 0
            state[touched[i], SCORE] = 0


@njit(cache=True, nogil=True)
def _push(graph, base, alpha, state, touched, queue):  # type: ignore[no-untyped-def]
    """Pushes a base node's mass; the number of nodes touched and the share of mass left."""
    # The queue is a ring. A node is in it at most once: it enters when its residual reaches the
    # threshold, and its residual is 0 when it leaves.
    head, waiting = 0, 1
    queue[0] = base
    touched[0] = base
    count = 1
    state[base, RESIDUAL] = alpha
    left = 1.0
    while waiting > 0:
        node = queue[head]
        head = head + 1 if head + 1 < len(queue) else 0
        waiting -= 1
        mass = state[node, RESIDUAL]
        state[node, RESIDUAL] = 0
        state[node, SCORE] += mass
        left -= mass
        start, stop = graph.indptr[node], graph.indptr[node + 1]
        share = (1 - alpha) * mass / max(stop - start, 1)
        for e in range(start, stop):
            neighbour = graph.indices[e]
            old = state[neighbour, RESIDUAL]
            new = old + share
            state[neighbour, RESIDUAL] = new
            if old == 0 and state[neighbour, SCORE] == 0:
                touched[count] = neighbour
                count += 1
            if old < state[neighbour, THRESHOLD] <= new:
                tail = head + waiting
                queue[tail if tail < len(queue) else tail - len(queue)] = neighbour
                waiting += 1
    return count, max(left, 0.0)
