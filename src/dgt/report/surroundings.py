"""Where nodes lie in the graph: their degree, local homophily and distance to training nodes."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

FARTHEST = 5  # hops that are counted one by one
DEGREES = (0, 1, 2, 3, 5, 9, 17, 33, 65, 129)
SHARES = 5  # bins of local homophily


class Groups(NamedTuple):
    """The nodes of a graph, sorted into groups."""

    title: str
    names: list[str]
    member: np.ndarray
    """Index of each node's group, -1 for none. Shape: ``(N,)``."""


def by_degree(A: csr_array) -> Groups:
    """Groups nodes by their number of neighbors, in steps that double."""
    member = np.searchsorted(DEGREES, np.diff(A.indptr), side="right") - 1
    names = [_range(low, high - 1) for low, high in pairwise(DEGREES)]
    return Groups("degree", [*names, f"{DEGREES[-1]} or more"], member)


def by_homophily(A: csr_array, y: np.ndarray) -> Groups:
    """Groups labeled nodes by the share of their labeled neighbors that have the same label."""
    row = np.repeat(np.arange(len(y)), np.diff(A.indptr))
    other = y[A.indices]
    labeled = np.bincount(row, other >= 0, minlength=len(y))
    same = np.bincount(row, (other == y[row]) & (other >= 0), minlength=len(y))
    with np.errstate(invalid="ignore"):
        share = same / labeled
    member = np.minimum(np.nan_to_num(share * SHARES).astype(int), SHARES - 1)
    member = np.where(labeled > 0, member, SHARES)
    names = [f"{b / SHARES:.0%} to {(b + 1) / SHARES:.0%}" for b in range(SHARES)]
    return Groups("local homophily", [*names, "no labeled neighbor"], np.where(y >= 0, member, -1))


def by_distance(A: csr_array, train: np.ndarray) -> Groups:
    """Groups nodes by the number of hops to the nearest training node."""
    hops = dijkstra(A, indices=np.flatnonzero(train), unweighted=True, min_only=True)
    member = np.where(np.isfinite(hops), np.minimum(hops, FARTHEST), FARTHEST + 1).astype(int)
    names = [*map(str, range(FARTHEST)), f"{FARTHEST} or more", "no path"]
    return Groups("hops to the nearest training node", names, member)


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"
