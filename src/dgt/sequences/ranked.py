"""A graph whose nodes are renamed in the order in which ties are settled."""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import connected_components


class RankedGraph(NamedTuple):
    """A graph with its nodes renamed by component, descending degree and id: their rank.

    In a component, a smaller rank is a larger degree, and each sorted list of neighbours begins
    with the largest; the hubs, read most, also lie side by side in memory.
    """

    indptr: np.ndarray  # int32 or int64 [N + 1], by rank
    indices: np.ndarray  # uint32 [2E], the neighbours' ranks, sorted
    degrees: np.ndarray  # float64 [N], by rank
    nodes: np.ndarray  # int32 [N], the id of each rank
    ranks: np.ndarray  # int32 [N], the rank of each id
    first: np.ndarray  # int32 [N], the first rank of each rank's component
    stop: np.ndarray  # int32 [N], the rank after its last


def rank(adjacency: scipy.sparse.csr_array) -> RankedGraph:
    """Renames the nodes of a symmetric adjacency matrix [N, N]."""
    degrees = np.diff(adjacency.indptr)
    _, component = connected_components(adjacency, directed=False)
    nodes = np.lexsort((-degrees, component)).astype(np.int32)
    ranked = adjacency[nodes][:, nodes]
    ranked.sort_indices()
    ranks = np.empty_like(nodes)
    ranks[nodes] = np.arange(len(nodes), dtype=np.int32)
    sizes = np.bincount(component)
    stop = np.repeat(np.cumsum(sizes), sizes).astype(np.int32)
    first = stop - np.repeat(sizes, sizes).astype(np.int32)
    return RankedGraph(
        indptr=ranked.indptr,
        indices=ranked.indices.astype(np.uint32),
        degrees=degrees[nodes].astype(np.float64),
        nodes=nodes,
        ranks=ranks,
        first=first,
        stop=stop,
    )
