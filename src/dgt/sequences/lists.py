"""Groups the rows of a large matrix into lists of similar rows, by k-means."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from dgt.sequences.products import four_products, scale
from dgt.system import threads

TILE = 256  # centroids at a time
ROUNDS = 6
TRAINING_ROWS_PER_LIST = 32
# A list with more rows than this multiple of the mean is split.
LONGEST = 4


class Lists(NamedTuple):
    """Lists of rows, and their centroids."""

    tiles: np.ndarray  # float32 (tiles, F, TILE), centroids as columns, padded with 0
    num_centroids: int  # K
    pieces: np.ndarray  # int64 (K + 1,), the lists of each centroid
    starts: np.ndarray  # int64 (lists + 1,), first place of each list
    members: np.ndarray  # int32 (N,), rows by list
    blocks: np.ndarray  # float32 (N * F,), for each list its rows as columns, (F, rows)


def rounded_rows(unit: np.ndarray, norm: float) -> np.ndarray:
    """Rounds rows of a given norm to integers, with products that are exact in single precision.

    Returns:
        float32 ``(N, F)``, padded with 0 to a multiple of 4 features.
    """
    N, F = unit.shape
    rows = np.zeros((N, -(-F // 4) * 4), dtype=np.float32)
    for at in range(0, N, 2**14):
        rows[at : at + 2**14, :F] = np.rint(unit[at : at + 2**14] * (scale(F) / norm))
    return rows


def train(rows: np.ndarray, count: int) -> np.ndarray:
    """Returns centroids by k-means, from a sample of rows. They do not depend on the number of
    threads, as all sums are exact.

    Args:
        rows: From :func:`rounded_rows`.
        count: Number of centroids K.

    Returns:
        float32 ``(K, F)``, rounded like the rows.
    """
    random = np.random.Generator(np.random.PCG64(0))
    size = min(len(rows), count * TRAINING_ROWS_PER_LIST)
    sample = rows[random.permutation(len(rows))[:size]]
    centroids, norm = sample[:count].copy(), scale(rows.shape[1])
    for _ in range(ROUNDS):
        list_of = assign(sample, centroids)
        order = np.argsort(list_of, kind="stable")
        sizes = np.bincount(list_of, minlength=count)
        filled = np.flatnonzero(sizes)
        starts = (np.cumsum(sizes) - sizes)[filled]
        sums = np.add.reduceat(sample[order].astype(np.float64), starts, axis=0)
        norms = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
        centroids[filled] = np.rint(sums / np.where(norms > 0, norms, 1) * norm)
    return centroids


def tiled(centroids: np.ndarray) -> np.ndarray:
    K, F = centroids.shape
    tiles = np.zeros((-(-K // TILE), F, TILE), dtype=np.float32)
    for tile in range(len(tiles)):
        part = centroids[tile * TILE : (tile + 1) * TILE]
        tiles[tile, :, : len(part)] = part.T
    return tiles


def assign(rows: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    """Returns the most similar centroid of each row, int32 ``(N,)``."""
    found = np.empty(len(rows), dtype=np.int32)
    threads.run(_assign, -(-len(rows) // 64), rows, tiled(centroids), len(centroids), found)
    return found


@njit(cache=True, nogil=True)
def _assign(thread, threads, rows, tiles, count, found):  # type: ignore[no-untyped-def]
    out = np.empty((4, TILE), np.float32)
    best = np.empty(64, np.float32)
    for at in range(64 * thread, len(rows), 64 * threads):
        stop = min(at + 64, len(rows))
        best[:] = -np.inf
        for tile in range(len(tiles)):
            width = min(TILE, count - tile * TILE)
            for a in range(at, stop, 4):
                last = stop - 1
                b, c, d = min(a + 1, last), min(a + 2, last), min(a + 3, last)
                four_products(rows, a, b, c, d, tiles[tile], out)
                for i in range(min(4, stop - a)):
                    for j in range(width):
                        if out[i, j] > best[a + i - at]:
                            best[a + i - at] = out[i, j]
                            found[a + i] = tile * TILE + j


def make_lists(rows: np.ndarray, centroids: np.ndarray) -> Lists:
    """Groups rows by their most similar centroid. Long lists, as of equal rows, are split by id, so
    that the cost of a search is bounded."""
    N, F = rows.shape
    count = len(centroids)
    list_of = assign(rows, centroids)
    members = np.argsort(list_of, kind="stable").astype(np.int32)
    sizes = np.bincount(list_of, minlength=count)
    longest = LONGEST * -(-N // count)
    parts = -(-sizes // longest)  # 0 for an empty list
    pieces = np.concatenate([[0], np.cumsum(parts)])
    lengths = np.full(pieces[-1], longest)
    lengths[pieces[1:][parts > 0] - 1] = (sizes - (parts - 1) * longest)[parts > 0]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    blocks = np.empty(N * F, dtype=np.float32)
    for start, stop in pairwise(starts):
        block = rows[members[start:stop]].T
        blocks[start * F : stop * F] = np.ascontiguousarray(block).ravel()
    return Lists(tiled(centroids), count, pieces, starts, members, blocks)
