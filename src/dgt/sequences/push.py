"""Fast PageRank sequences of large undirected graphs, in single precision."""

import numpy as np
from numba import njit

from dgt.sequences.top import insert
from dgt.system.prefetch import prefetch

# What remains of a residual that was passed on: not 0, which marks nodes that were never reached.
REACHED = np.float32(1e-37)
# How many places of the queue ahead memory is prefetched, and for how many neighbors of a node.
FAR, NEAR, NEIGHBORS = 8, 4, 64


@njit(cache=True, nogil=True)
def sort_nodes(  # type: ignore[no-untyped-def]
    thread, threads, graph, hubs, bases, alpha, tolerance, sequences, sequence_scores
):
    """Sorts the nodes for some base nodes by PageRank, from forward push.

    This is the method of :func:`dgt.sequences.ppr.ppr_sequences` with three changes. Hubs keep
    their residuals: what they would pass on to a candidate is known from the PageRank of the hubs
    (:mod:`dgt.sequences.hub_scores`), as is their own score. Residuals have single precision and
    lie next to the limit from which on they are pushed, so that an edge costs one access to
    memory. And the loop over the edges has no branches.
    """
    indptr, indices, degrees = graph.indptr, graph.indices, graph.degrees
    weights, weighted = graph.weights, len(graph.weights) > 0
    N, length = len(degrees), sequences.shape[1]
    limit = np.float32(alpha * tolerance)
    # Residual and limit of each node. Hubs have no limit.
    state = np.zeros((N, 2), np.float32)
    for node in range(N):
        state[node, 1] = limit * np.float32(degrees[node])
    for node in hubs.nodes:
        state[node, 1] = np.inf
    scores = np.zeros(N, np.float32)
    touched = np.empty(N + 1, np.int32)
    room = 1
    while room <= N:
        room *= 2
    queue = np.zeros(room, np.int32)
    pushed = np.empty(N + 1, np.int32)
    near = np.empty(length + length // 2 + 8, np.int32)
    near_scores = np.empty(len(near), np.float32)
    best = np.empty(length, np.int32)
    best_scores = np.empty(length, np.float32)
    shares = np.empty(len(hubs.nodes), np.float32)
    for b in range(thread, len(bases), threads):
        base = bases[b]
        count, times, left = _push(
            graph, weighted, base, alpha, state, scores, touched, pushed, queue
        )

        # Candidates, by the score so far, the residual, and the share of the rest.
        first, stop = graph.first[base], graph.stop[base]
        volume = graph.volumes[stop] - graph.volumes[first]
        volume = volume if volume > 0 else 1.0
        per_edge = np.float32((1 - alpha) * left / volume)
        per_limit = per_edge / limit
        filled = 0
        for i in range(times):
            node = pushed[i]
            if hubs.place[node] < 0:
                score = scores[node] + state[node, 0] + per_edge * np.float32(degrees[node])
                filled = insert(near, near_scores, filled, node, score)
        least = near_scores[filled - 1] if filled == len(near) else np.float32(-1)
        for i in range(count):
            node = touched[i]
            score = state[node, 0] + per_limit * state[node, 1]
            if score > least and hubs.place[node] < 0 and scores[node] == 0:
                filled = insert(near, near_scores, filled, node, score)
                least = near_scores[filled - 1] if filled == len(near) else np.float32(-1)
        for node in range(first, stop):
            # Untouched nodes, by descending degree.
            score = per_edge * np.float32(degrees[node])
            if score < least:
                break
            if state[node, 0] == 0 and hubs.place[node] < 0:
                filled = insert(near, near_scores, filled, node, score)
                least = near_scores[filled - 1] if filled == len(near) else np.float32(-1)

        # The residual of each hub, per unit of weight.
        for h in range(len(shares)):
            hub = hubs.nodes[h]
            left -= state[hub, 0] / alpha
            shares[h] = state[hub, 0] / np.float32(alpha * max(degrees[hub], 1.0))
        rest = np.float32((1 - alpha) ** 2 * max(left, 0.0) / volume)

        # The best candidates, after the next step of the residuals, and the hubs.
        base_score = np.float32(alpha)  # a lower bound
        kept = insert(best, best_scores, 0, graph.nodes[base], np.float32(np.inf))
        for i in range(filled):
            node = near[i]
            step = np.float32(0)
            for e in range(indptr[node], indptr[node + 1]):
                share = state[indices[e], 0] / state[indices[e], 1]  # 0 for hubs
                step += share * np.float32(weights[e]) if weighted else share
            tail = rest
            row = hubs.scores[node]
            for h in range(len(shares)):
                tail += shares[h] * row[h]
            degree = np.float32(degrees[node])
            score = scores[node] + state[node, 0] + degree * tail
            score += np.float32(1 - alpha) * limit * step
            if node == base:
                base_score = score
            else:
                kept = insert(best, best_scores, kept, graph.nodes[node], score)
        for h in range(len(shares)):
            node, score = hubs.nodes[h], hubs.scores[base, h]
            if node == base:
                base_score = score
            elif first <= node < stop and score > 0:
                kept = insert(best, best_scores, kept, graph.nodes[node], score)
        sequences[b, :kept] = best[:kept]
        sequence_scores[b, :kept] = best_scores[:kept]
        sequence_scores[b, 0] = base_score
        for i in range(count):
            state[touched[i], 0] = 0
        for i in range(times):
            scores[pushed[i]] = 0


@njit(cache=True, nogil=True)
def _push(  # type: ignore[no-untyped-def]
    graph, weighted, base, alpha, state, scores, touched, pushed, queue
):
    """Pushes the mass of a base node.

    Returns:
        The number of touched nodes, the number of pushed ones, and the mass that remains in the
        residuals.
    """
    indptr, indices, degrees, weights = graph.indptr, graph.indices, graph.degrees, graph.weights
    flat = state.reshape(-1)
    # The queue is a ring buffer. It holds each node at most once: a node enters when its residual
    # reaches the limit, and its residual is nearly 0 when it leaves. Old entries that are
    # prefetched do no harm.
    last = len(queue) - 1
    head, tail = np.int64(0), np.int64(1)
    queue[0] = base
    touched[0] = base
    count, times = np.int64(1), np.int64(0)
    state[base, 0] = alpha
    left = 1.0
    while head < tail:
        node = queue[head & last]
        head += 1
        prefetch(indptr, queue[(head + FAR) & last])
        coming = queue[(head + NEAR) & last]
        prefetch(scores, coming)
        prefetch(indices, indptr[coming])
        if head + 2 < tail:
            coming = queue[(head + 2) & last]
            first = indptr[coming]
            for e in range(first, min(indptr[coming + 1], first + NEIGHBORS)):
                prefetch(flat, 2 * np.int64(indices[e]))
        mass = state[node, 0]
        state[node, 0] = REACHED
        pushed[times] = node
        times += np.int64(scores[node] == 0)
        scores[node] += mass
        left -= mass
        first, stop = indptr[node], indptr[node + 1]
        degree = degrees[node] if weighted else np.float64(stop - first)
        share = np.float32((1 - alpha) / (degree if degree > 0 else 1.0))
        share *= mass
        for e in range(first, stop):
            neighbor = indices[e]
            old, least = state[neighbor, 0], state[neighbor, 1]
            new = old + (share * np.float32(weights[e]) if weighted else share)
            state[neighbor, 0] = new
            touched[count] = neighbor
            count += np.int64(old == 0)
            queue[tail & last] = neighbor
            tail += np.int64(old < least) & np.int64(new >= least)
    return count, times, max(left, 0.0)
