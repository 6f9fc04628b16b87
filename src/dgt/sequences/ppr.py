"""Sequences by personalized PageRank."""

from collections.abc import Callable

import numba
import numpy as np
import scipy.sparse

from dgt.sequences.top import insert

CHUNK = 1024


def ppr(
    adjacency: scipy.sparse.csr_array,
    length: int,
    alpha: float,
    tolerance: float,
    advance: Callable[[int], None],
    nodes: np.ndarray | None = None,
) -> np.ndarray:
    num_nodes = adjacency.shape[0]
    if nodes is None:
        nodes = np.arange(num_nodes)
    sequences = np.full((len(nodes), length), -1, dtype=np.int32)
    for start in range(0, len(nodes), CHUNK):
        part = nodes[start : start + CHUNK]
        _push(
            adjacency.indptr,
            adjacency.indices,
            part,
            alpha,
            tolerance,
            numba.get_num_threads(),
            sequences[start : start + CHUNK],
        )
        advance(len(part))
    return sequences


@numba.njit(parallel=True, cache=True)
def _push(indptr, indices, bases, alpha, tolerance, threads, sequences):  # type: ignore[no-untyped-def]
    num_nodes = len(indptr) - 1
    length = sequences.shape[1]
    for thread in numba.prange(threads):
        score = np.zeros(num_nodes)
        residual = np.zeros(num_nodes)
        touched = np.empty(num_nodes, np.int32)
        is_touched = np.zeros(num_nodes, np.bool_)
        queue = np.empty(num_nodes + 1, np.int32)
        is_queued = np.zeros(num_nodes, np.bool_)
        nodes = np.empty(length, np.int32)
        scores = np.empty(length)
        for b in range(thread, len(bases), threads):
            base = bases[b]
            residual[base] = alpha
            touched[0] = base
            is_touched[base] = True
            count = 1
            queue[0] = base
            is_queued[base] = True
            head, tail = 0, 1
            while head != tail:
                node = queue[head]
                head = head + 1 if head < num_nodes else 0
                is_queued[node] = False
                mass = residual[node]
                residual[node] = 0.0
                score[node] += mass
                first, last = indptr[node], indptr[node + 1]
                if first == last:
                    continue
                share = (1 - alpha) * mass / (last - first)
                for e in range(first, last):
                    neighbour = indices[e]
                    residual[neighbour] += share
                    if not is_touched[neighbour]:
                        is_touched[neighbour] = True
                        touched[count] = neighbour
                        count += 1
                    degree = indptr[neighbour + 1] - indptr[neighbour]
                    if (
                        not is_queued[neighbour]
                        and residual[neighbour] >= alpha * tolerance * degree
                    ):
                        is_queued[neighbour] = True
                        queue[tail] = neighbour
                        tail = tail + 1 if tail < num_nodes else 0
            filled = insert(nodes, scores, 0, base, np.inf)
            for i in range(count):
                node = touched[i]
                if node != base:
                    filled = insert(nodes, scores, filled, node, score[node] + residual[node])
                score[node] = 0.0
                residual[node] = 0.0
                is_touched[node] = False
            for i in range(filled):
                sequences[b, i] = nodes[i]
