"""Sequences by breadth-first search."""

from collections.abc import Callable

import numpy as np
from numba import njit

from dgt import threads
from dgt.sequences.ranked import RankedGraph

CHUNK = 16384


def bfs_sequences(
    graph: RankedGraph,
    length: int,
    advance: Callable[[int], None],
    bases: range | np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Each node's nearest nodes: by hop, inside a hop by descending degree, then by id.

    A hop's nodes share a score of 1/2 for each edge on the way to them.

    Args:
        graph: the graph.
        length: nodes kept, L.
        advance: called with the number of base nodes done since the last call.
        bases: ids of the base nodes, by default all N.

    Returns:
        The nodes, int32 [N, L], padded with -1, and their scores, float32 [N, L].
    """
    ranks = graph.ranks if bases is None else graph.ranks[bases]
    sequences = np.full((len(ranks), length), -1, dtype=np.int32)
    scores = np.zeros((len(ranks), length), dtype=np.float32)
    for start in range(0, len(ranks), CHUNK):
        part = slice(start, start + CHUNK)
        threads.run(_search, len(ranks[part]), graph, ranks[part], sequences[part], scores[part])
        advance(len(ranks[part]))
    return sequences, scores


@njit(cache=True, nogil=True)
def _search(thread, threads, graph, bases, sequences, scores):  # type: ignore[no-untyped-def]
    indptr, indices = graph.indptr, graph.indices
    length = sequences.shape[1]
    # By whom each node was last met: no reset between base nodes.
    met_by = np.full(len(graph.nodes), -1, np.int32)
    found = np.empty(length, np.uint32)
    for b in range(thread, len(bases), threads):
        base = bases[b]
        met_by[base] = base
        found[0] = base
        scores[b, 0] = share = 1.0
        hop_start, hop_stop = 0, 1
        while hop_start < hop_stop < length:
            filled = hop_stop
            for i in range(hop_start, hop_stop):
                for e in range(indptr[found[i]], indptr[found[i] + 1]):
                    neighbour = indices[e]
                    if filled == length and neighbour > found[length - 1]:
                        break  # the rest of this sorted list is beyond the cut as well
                    if met_by[neighbour] == base:
                        continue
                    met_by[neighbour] = base
                    # The next hop is kept sorted; when there is no room, its last falls out.
                    place = min(filled, length - 1)
                    while place > hop_stop and found[place - 1] > neighbour:
                        found[place] = found[place - 1]
                        place -= 1
                    found[place] = neighbour
                    filled = min(filled + 1, length)
            hop_start, hop_stop = hop_stop, filled
            share /= 2
            for i in range(hop_start, hop_stop):
                scores[b, i] = share / (hop_stop - hop_start)
        for i in range(hop_stop):
            sequences[b, i] = graph.nodes[found[i]]
