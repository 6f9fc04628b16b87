"""Fast PageRank sequences of large undirected graphs, in single precision."""

import numpy as np
from numba import njit

from dgt.sequences.top import insert
from dgt.system.prefetch import prefetch

# What remains of a residual that was passed on: not 0, which marks nodes that were never reached.
REACHED = np.float32(1e-37)
# How many places of the queue ahead memory is prefetched, and for how many neighbors of a node.
FAR, NEAR, NEIGHBORS = 8, 4, 64
# Numbers in a line of the cache.
LINE = 16
# A candidate's score changes by less than this factor after the following steps.
CHANGE = np.float32(2)


@njit(cache=True, nogil=True)
def sort_nodes(  # type: ignore[no-untyped-def]
    thread, threads, graph, hubs, bases, alpha, tolerance, sequences, sequence_scores
):
    """Sorts the nodes for some base nodes by PageRank, from forward push.

    This is the method of :func:`dgt.sequences.ppr.ppr_sequences` with a coarser push, after which
    more is known about what becomes of the residuals. As the graph is undirected, the part of a
    residual at node u that arrives at candidate v follows from the PageRank of u for v as the base
    node. This is known for the nodes near v (:mod:`dgt.sequences.near`) and for hubs, which
    therefore keep their residuals, and in sum for each community of the other nodes
    (:mod:`dgt.sequences.hub_scores`), over which residuals are taken to be spread by degree.

    Residuals have single precision and lie next to the limit from which on they are pushed, so that
    an edge costs one access to memory. The loop over the edges has no branches.
    """
    degrees, weighted = graph.degrees, len(graph.weights) > 0
    length = sequences.shape[1]
    limit = np.float32(alpha * tolerance)
    state, scores, touched, pushed, queue = buffers(graph, hubs, alpha, tolerance)
    near = np.empty(length + length // 2 + 8, np.int32)
    near_scores = np.empty(len(near), np.float32)
    best = np.empty(length, np.int32)
    best_scores = np.empty(length, np.float32)
    H, columns, column = len(hubs.nodes), len(hubs.volumes), hubs.column
    shares = np.empty(columns, np.float32)
    per_edge, per_limit = np.empty(columns, np.float32), np.empty(columns, np.float32)
    for b in range(thread, len(bases), threads):
        base = bases[b]
        count, times, left = push(
            graph, weighted, base, alpha, state, scores, touched, pushed, queue
        )
        first, stop = graph.first[base], graph.stop[base]
        _share(graph, hubs, base, left, alpha, state, touched[:count], shares, per_edge)
        per_limit[:] = per_edge / limit

        # Candidates, by the score so far, the residual, and the share of the rest.
        filled = 0
        for i in range(times):
            node = pushed[i]
            if column[node] >= H:
                score = scores[node] + state[node, 0]
                score += per_limit[column[node]] * state[node, 1]
                filled = insert(near, near_scores, filled, node, score)
        least = near_scores[filled - 1] if filled == len(near) else np.float32(-1)
        for i in range(count):
            node = touched[i]
            score = state[node, 0] + per_limit[column[node]] * state[node, 1]
            if score > least and column[node] >= H and scores[node] == 0:
                filled = insert(near, near_scores, filled, node, score)
                least = near_scores[filled - 1] if filled == len(near) else np.float32(-1)
        most = per_edge[H:].max()
        for node in range(first, stop):
            # Untouched nodes, by descending degree.
            if most * np.float32(degrees[node]) < least:
                break
            if state[node, 0] == 0 and column[node] >= H:
                score = per_edge[column[node]] * np.float32(degrees[node])
                filled = insert(near, near_scores, filled, node, score)
                least = near_scores[filled - 1] if filled == len(near) else np.float32(-1)

        # The best candidates, after the following steps of the residuals, and the hubs.
        base_score = np.float32(alpha)  # a lower bound
        kept = insert(best, best_scores, 0, graph.nodes[base], np.float32(np.inf))
        for i in range(filled):
            node = near[i]
            if i + 1 < filled:
                _prefetch_rows(hubs, near[i + 1])
            if kept == length and near_scores[i] * CHANGE < best_scores[length - 1]:
                break
            total = _gathered(state, hubs.near[node], hubs.values[node]) / np.float32(alpha)
            total += _product(shares, hubs.scores[node])
            score = scores[node] + np.float32(degrees[node]) * total
            if node == base:
                base_score = score
            else:
                kept = insert(best, best_scores, kept, graph.nodes[node], score)
        for h in range(H):
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
def _prefetch_rows(hubs, node):  # type: ignore[no-untyped-def]
    row, near, values = hubs.scores[node], hubs.near[node], hubs.values[node]
    for at in range(0, len(row), LINE):
        prefetch(row, at)
    for at in range(0, len(near), LINE):
        prefetch(near, at)
        prefetch(values, at)


@njit(cache=True, nogil=True)
def _gathered(state, nodes, values):  # type: ignore[no-untyped-def]
    """The sum of residuals times values. Four sums, as an addition waits for the one before."""
    a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for i in range(0, len(nodes) - 3, 4):
        a += state[nodes[i], 0] * values[i]
        b += state[nodes[i + 1], 0] * values[i + 1]
        c += state[nodes[i + 2], 0] * values[i + 2]
        d += state[nodes[i + 3], 0] * values[i + 3]
    for i in range(len(nodes) // 4 * 4, len(nodes)):
        a += state[nodes[i], 0] * values[i]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)
def _product(x, y):  # type: ignore[no-untyped-def]
    a, b, c, d = np.float32(0), np.float32(0), np.float32(0), np.float32(0)
    for i in range(0, len(x) - 3, 4):
        a += x[i] * y[i]
        b += x[i + 1] * y[i + 1]
        c += x[i + 2] * y[i + 2]
        d += x[i + 3] * y[i + 3]
    for i in range(len(x) // 4 * 4, len(x)):
        a += x[i] * y[i]
    return (a + b) + (c + d)


@njit(cache=True, nogil=True)
def buffers(graph, hubs, alpha, tolerance):  # type: ignore[no-untyped-def]
    """Allocates what :func:`push` needs, for all base nodes of a thread.

    Returns:
        The residual and the limit of each node, ``(N, 2)``, the scores, and room for the touched
        nodes, the pushed ones and the queue.
    """
    N = len(graph.degrees)
    state = np.zeros((N, 2), np.float32)
    for node in range(N):
        state[node, 1] = np.float32(alpha * tolerance) * np.float32(graph.degrees[node])
    for node in hubs.nodes:
        state[node, 1] = np.inf  # hubs have no limit
    room = 1
    while room <= N:
        room *= 2
    scores, queue = np.zeros(N, np.float32), np.zeros(room, np.int32)
    return state, scores, np.empty(N + 1, np.int32), np.empty(N + 1, np.int32), queue


@njit(cache=True, nogil=True)
def _share(  # type: ignore[no-untyped-def]
    graph, hubs, base, left, alpha, state, touched, shares, per_edge
):
    """Adds up the residuals by column, the hubs and communities, per unit of weight (``shares``),
    and what becomes of them in a node of each community, per unit of its weight (``per_edge``)."""
    H = len(hubs.nodes)
    shares[:] = 0
    for node in touched:
        shares[hubs.column[node]] += state[node, 0]
    if graph.first[base] == hubs.main:
        for c in range(len(shares)):
            shares[c] /= np.float32(alpha * max(hubs.volumes[c], 1.0))
        per_edge[:] = 0
        for c in range(len(shares)):
            row, share = hubs.mean[c], shares[c]
            for other in range(len(row)):
                per_edge[other] += share * row[other]
    else:
        # The sizes of communities are those in the largest component.
        volume = graph.volumes[graph.stop[base]] - graph.volumes[graph.first[base]]
        volume = np.float32(max(volume, 1.0))
        per_edge[:] = np.float32((1 - alpha) * left) / volume
        rest = np.float32(0)
        for c in range(H, len(shares)):
            rest += shares[c]
        shares[H:] = rest / np.float32(alpha * volume)
        for h in range(H):
            shares[h] /= np.float32(alpha * max(graph.degrees[hubs.nodes[h]], 1.0))


@njit(cache=True, nogil=True)
def push(  # type: ignore[no-untyped-def]
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
