"""Sequences by breadth-first search."""

from collections.abc import Callable

import numba
import numpy as np
import scipy.sparse

CHUNK = 16384


def bfs(
    adjacency: scipy.sparse.csr_array, length: int, advance: Callable[[int], None]
) -> np.ndarray:
    """Each node's nearest nodes: by hop, inside a hop by descending degree, then by id.

    Args:
        adjacency: the graph, symmetric [N, N].
        length: nodes kept, L.
        advance: called with the number of nodes done since the last call.

    Returns:
        int32 [N, L], padded with -1.
    """
    num_nodes = adjacency.shape[0]
    # Renamed by (descending degree, id), nodes compare as plain numbers and a sorted list of
    # neighbours has the wanted order.
    by_rank = np.argsort(-np.diff(adjacency.indptr), kind="stable").astype(np.int32)
    ranked = adjacency[by_rank][:, by_rank]
    ranked.sort_indices()
    sequences = np.full((num_nodes, length), -1, dtype=np.int32)
    threads = numba.get_num_threads()
    for start in range(0, num_nodes, CHUNK):
        stop = min(start + CHUNK, num_nodes)
        _search(ranked.indptr, ranked.indices, by_rank, start, stop, threads, sequences)
        advance(stop - start)
    return sequences


@numba.njit(parallel=True, cache=True)
def _search(indptr, indices, by_rank, start, stop, threads, sequences):  # type: ignore[no-untyped-def]
    length = sequences.shape[1]
    for thread in numba.prange(threads):
        seen = np.full(len(by_rank), -1, np.int32)  # the last base node that met this one
        found = np.empty(length, np.int32)
        for base in range(start + thread, stop, threads):
            seen[base] = base
            found[0] = base
            hop_start, hop_stop = 0, 1
            while hop_start < hop_stop and hop_stop < length:
                filled = hop_stop
                for i in range(hop_start, hop_stop):
                    node = found[i]
                    for e in range(indptr[node], indptr[node + 1]):
                        neighbour = indices[e]
                        if filled == length and neighbour > found[length - 1]:
                            break  # the rest of this sorted list is beyond the cut as well
                        if seen[neighbour] == base:
                            continue
                        seen[neighbour] = base
                        # The next hop is kept sorted; when full, its last node falls out.
                        place = min(filled, length - 1)
                        while place > hop_stop and found[place - 1] > neighbour:
                            found[place] = found[place - 1]
                            place -= 1
                        found[place] = neighbour
                        filled = min(filled + 1, length)
                hop_start, hop_stop = hop_stop, filled
            row = by_rank[base]
            for i in range(hop_stop):
                sequences[row, i] = by_rank[found[i]]
