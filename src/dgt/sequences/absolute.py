"""Absolute criteria: one order of all nodes, the same for every base node."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra

from dgt.config import SequenceConfig
from dgt.sequences.criterion import Criterion, Graph, Sort, no_settings
from dgt.sequences.unit import on_grid, unit_rows
from dgt.storage.segments import Advance

STEPS = 1000
TOLERANCE = 1e-12


def by_chance(graph: Graph, settings: SequenceConfig) -> np.ndarray:
    """A random order with a fixed seed."""
    return np.random.default_rng(0).permutation(graph.num_nodes)


def by_hub(graph: Graph, settings: SequenceConfig) -> np.ndarray:
    """By hop from the node of highest degree, then by descending degree. Unreachable nodes come
    last."""
    degrees = np.diff(graph.adjacency.indptr)
    hops = dijkstra(graph.adjacency, indices=degrees.argmax(), unweighted=True)
    return np.lexsort((-degrees, hops))


def by_pagerank(graph: Graph, settings: SequenceConfig) -> np.ndarray:
    """By descending PageRank."""
    # Rounding makes equivalent nodes tie, although their sums differ in the last bits.
    scores = pagerank(graph.adjacency, settings.ppr_alpha).astype(np.float32)
    return np.argsort(-scores, kind="stable")


def by_centrality(graph: Graph, settings: SequenceConfig) -> np.ndarray:
    """By descending cosine similarity with the mean of the normalized features."""
    return np.argsort(-_centrality(graph.x), kind="stable")


def pagerank(A: scipy.sparse.csr_array, alpha: float) -> np.ndarray:
    r"""The PageRank :math:`\mathbf{p}` of a symmetric adjacency matrix,

    .. math::
        \mathbf{p} = \alpha / N + (1 - \alpha) \mathbf{A} \mathbf{D}^{-1} \mathbf{p}

    where a node without edges distributes its score evenly over all nodes.

    Returns:
        float64 ``(N,)``.
    """
    N = A.shape[0]
    degrees = np.diff(A.indptr)
    alone = degrees == 0
    p = np.full(N, 1 / N)
    for _ in range(STEPS):
        spread = A @ (p / np.maximum(degrees, 1)) + p[alone].sum() / N
        before, p = p, alpha / N + (1 - alpha) * spread
        if abs(p - before).sum() < TOLERANCE:
            break
    return p


def _centrality(x: np.ndarray | scipy.sparse.csr_array) -> np.ndarray:
    """The cosine similarity of each node with the mean of the normalized features, rounded."""
    unit = unit_rows(x)
    mean = unit_rows(np.asarray(unit.sum(axis=0)).reshape(1, -1))[0]
    return on_grid(unit @ mean)


def _absolute(
    order: Callable[[Graph, SequenceConfig], np.ndarray],
    settings: Callable[[SequenceConfig], tuple[object, ...]] = no_settings,
    reads: tuple[str, ...] = ("edge_index",),
) -> Criterion:
    """A criterion with the first nodes of ``order`` as the sequence of every base node."""

    def begin(graph: Graph, settings: SequenceConfig, folder: Path | None) -> Sort:
        first = order(graph, settings)[: settings.length]

        def sort(bases: range, advance: Advance) -> tuple[np.ndarray, np.ndarray]:
            sequences = np.full((len(bases), settings.length), -1, dtype=np.int32)
            sequences[:, : len(first)] = first
            advance(len(bases))
            return sequences, np.ones_like(sequences, dtype=np.float32)

        return sort

    return Criterion(begin=begin, settings=settings, reads=reads)


RANDOM = _absolute(by_chance)
BFS = _absolute(by_hub)
PPR = _absolute(by_pagerank, settings=lambda settings: (settings.ppr_alpha,))
SIMILARITY = _absolute(by_centrality, reads=("x",))
