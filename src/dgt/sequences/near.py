"""The nodes near each node by personalized PageRank, with their scores."""

import numpy as np
from numba import njit

from dgt.sequences.hub_scores import Hubs
from dgt.sequences.push import buffers, push
from dgt.sequences.tie_order import OrderedGraph
from dgt.storage.segments import Advance
from dgt.system import threads

CHUNK = 16384
# Bins of the logarithm of a float32, by its sign, exponent and first bits of its fraction.
SHIFT = 20
BINS = 2**11


def with_near(
    graph: OrderedGraph,
    hubs: Hubs,
    alpha: float,
    tolerance: float,
    count: int,
    advance: Advance = lambda done: None,
) -> Hubs:
    """Adds the scores of the nodes near each node, from forward push.

    Args:
        graph: An undirected graph.
        hubs: From :func:`~dgt.sequences.hub_scores.hub_scores`. The scores of communities are
            changed in place: those of the nodes that are near are subtracted.
        alpha: Teleport probability.
        tolerance: Residual per edge from which on a node is pushed.
        count: Largest number of nodes K that are near a node.
        advance: Called with the number of nodes processed since the last call.
    """
    N = len(graph.nodes)
    near = np.zeros((N, count), dtype=np.uint32)
    values = np.zeros((N, count), dtype=np.float32)
    for start in range(0, N, CHUNK):
        stop = min(N, start + CHUNK)
        arguments = (graph, hubs, alpha, tolerance, start, stop, near, values)
        threads.run(_search, stop - start, *arguments)
        advance(stop - start)
    return hubs._replace(near=near, values=values)


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    thread, threads, graph, hubs, alpha, tolerance, start, stop, near, values
):
    degrees, weighted, H = graph.degrees, len(graph.weights) > 0, len(hubs.nodes)
    state, scores, touched, pushed, queue = buffers(graph, hubs, alpha, tolerance)
    keys = np.empty(len(degrees), np.float32)
    bins = keys.view(np.uint32)
    sizes = np.zeros(BINS, np.int64)
    room = near.shape[1]
    for base in range(start + thread, stop, threads):
        if hubs.column[base] < H:
            continue
        count, times, _ = push(graph, weighted, base, alpha, state, scores, touched, pushed, queue)
        for i in range(times):
            state[pushed[i], 0] += scores[pushed[i]]
            scores[pushed[i]] = 0
        # The variance of a sum over the residuals of another base node grows with q^2 / degree, for
        # a score of q. The limit in the state is a multiple of the degree.
        for i in range(count):
            q, degree = state[touched[i], 0], state[touched[i], 1]
            keys[i] = q * (q / degree) if degree > 0 else np.float32(np.inf)  # 0 for hubs
            sizes[bins[i] >> SHIFT] += 1
        last, left = BINS - 1, room
        while last > 0 and sizes[last] <= left:
            left -= sizes[last]
            last -= 1
        filled = 0
        row = hubs.scores[base]
        for i in range(count):
            place = np.int64(bins[i] >> SHIFT)
            if keys[i] > 0 and (place > last or (place == last and left > 0)):
                left -= np.int64(place == last)
                node = touched[i]
                q = state[node, 0]
                near[base, filled] = node
                values[base, filled] = q / np.float32(max(degrees[node], 1.0))
                row[hubs.column[node]] -= q
                filled += 1
        for c in range(H, len(row)):
            row[c] = max(row[c], np.float32(0))
        for i in range(count):
            sizes[bins[i] >> SHIFT] = 0
            state[touched[i], 0] = 0
