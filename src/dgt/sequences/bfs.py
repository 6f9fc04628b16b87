"""Sequences by breadth-first search."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit

from dgt.config import SequenceConfig
from dgt.sequences.criterion import LINKS, Criterion, Graph, Sort
from dgt.sequences.tie_order import OrderedGraph
from dgt.system import threads

CHUNK = 16384


def bfs_sequences(
    graph: OrderedGraph,
    length: int,
    advance: Callable[[int], None],
    bases: range | np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest nodes of each base node: by hop, within a hop by descending degree, then by id.

    The nodes of hop h share a score of 2^-h equally. In a directed graph, a hop follows a link, and
    the degree counts links in both directions.

    Args:
        graph: The graph.
        length: Length L of the sequences.
        advance: Called with the number of base nodes processed since the last call.
        bases: Ids of the base nodes (default: all N).

    Returns:
        The nodes, int32 ``(N, L)``, padded with -1, and their scores, float32 ``(N, L)``.
    """
    starts = graph.positions if bases is None else graph.positions[bases]
    sequences = np.full((len(starts), length), -1, dtype=np.int32)
    scores = np.zeros((len(starts), length), dtype=np.float32)
    for at in range(0, len(starts), CHUNK):
        part = slice(at, at + CHUNK)
        own = starts[part]
        threads.run(_search, len(own), graph, own, sequences[part], scores[part])
        advance(len(own))
    return sequences, scores


@njit(cache=True, nogil=True)
def _search(thread, threads, graph, bases, sequences, scores):  # type: ignore[no-untyped-def]
    indptr, indices = graph.indptr, graph.indices
    length = sequences.shape[1]
    # The base node that last visited each node. No reset is needed between base nodes.
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
                    neighbor = indices[e]
                    if filled == length and neighbor > found[length - 1]:
                        break  # the rest of this sorted list is beyond the cut as well
                    if met_by[neighbor] == base:
                        continue
                    met_by[neighbor] = base
                    # Insertion sort of the next hop. A full sequence drops its last node.
                    place = min(filled, length - 1)
                    while place > hop_stop and found[place - 1] > neighbor:
                        found[place] = found[place - 1]
                        place -= 1
                    found[place] = neighbor
                    filled = min(filled + 1, length)
            hop_start, hop_stop = hop_stop, filled
            share /= 2
            for i in range(hop_start, hop_stop):
                scores[b, i] = share / (hop_stop - hop_start)
        for i in range(hop_stop):
            sequences[b, i] = graph.nodes[found[i]]


def _criterion(
    form: Callable[[Graph], OrderedGraph], reads: tuple[str, ...], tuned: bool = False
) -> Criterion:
    """A criterion by breadth-first search in one of the forms of a graph."""

    def begin(graph: Graph, settings: SequenceConfig, folder: Path | None) -> Sort:
        return lambda bases, advance: bfs_sequences(form(graph), settings.length, advance, bases)

    return Criterion(begin=begin, reads=reads, tuned=tuned)


BFS = _criterion(lambda graph: graph.ordered, ("edge_index",), tuned=True)
OUT = _criterion(lambda graph: graph.out, LINKS[:2])
IN = _criterion(lambda graph: graph.into, LINKS[:2])
