"""Groups the rows of a large matrix into lists of similar rows, by k-means."""

from typing import NamedTuple

import numpy as np
from numba import njit

from dgt.sequences.products import LANES, SCALE, four_products, in_groups, lanes_from, lowest
from dgt.storage.segments import Advance
from dgt.system import threads

TILE = 16  # groups of centroids at a time
ROUNDS = 6
# Rows that are assigned between two calls of ``advance``.
CHUNK = 2**14
TRAINING_ROWS_PER_LIST = 32
# A list with more rows than this multiple of the mean is split.
LONGEST = 4


class Lists(NamedTuple):
    """Lists of rows, and their centroids. Each list has whole groups of rows, as :func:`in_groups`
    arranges them."""

    centroids: np.ndarray  # int16 (groups, F * LANES)
    num_centroids: int  # K
    pieces: np.ndarray  # int64 (K + 1,), the lists of each centroid
    starts: np.ndarray  # int64 (lists + 1,), first group of each list
    members: np.ndarray  # int32 (groups * LANES,), rows by list, padded with -1
    groups: np.ndarray  # int16 (groups, F * LANES)


def work(num_rows: int, count: int) -> int:
    """Returns how many rows :func:`train` and :func:`make_lists` assign, about."""
    return ROUNDS * min(num_rows, count * TRAINING_ROWS_PER_LIST) + num_rows


def train(rows: np.ndarray, count: int, advance: Advance = lambda done: None) -> np.ndarray:
    """Returns centroids by k-means, from a sample of rows. They do not depend on the number of
    threads, as all sums are exact.

    Args:
        rows: From :func:`~dgt.sequences.products.rounded_rows`, ``(N, F)``.
        count: Number of centroids K.
        advance: Called with the number of rows assigned since the last call.

    Returns:
        int16 ``(K, F)``, rounded like the rows.
    """
    random = np.random.Generator(np.random.PCG64(0))
    sample = rows[random.permutation(len(rows))[: count * TRAINING_ROWS_PER_LIST]]
    centroids = sample[:count].copy()
    for _ in range(ROUNDS):
        list_of = assign(sample, centroids, advance)
        order = np.argsort(list_of, kind="stable")
        sizes = np.bincount(list_of, minlength=count)
        filled = np.flatnonzero(sizes)
        starts = (np.cumsum(sizes) - sizes)[filled]
        sums = np.add.reduceat(sample[order].astype(np.float64), starts, axis=0)
        norms = np.sqrt((sums * sums).sum(axis=1, keepdims=True))
        centroids[filled] = np.rint(sums / np.where(norms > 0, norms, 1) * SCALE)
    return centroids


def _in_groups(rows: np.ndarray) -> np.ndarray:
    members = np.full(-(-len(rows) // LANES) * LANES, -1)
    members[: len(rows)] = np.arange(len(rows))
    return in_groups(rows, members)


def assign(
    rows: np.ndarray, centroids: np.ndarray, advance: Advance = lambda done: None
) -> np.ndarray:
    """Returns the most similar centroid of each row, int32 ``(N,)``."""
    found = np.empty(len(rows), dtype=np.int32)
    groups = _in_groups(centroids)
    for at in range(0, len(rows), CHUNK):
        own, out = rows[at : at + CHUNK], found[at : at + CHUNK]
        threads.run(_assign, -(-len(out) // 64), own, groups, len(centroids), out)
        advance(len(out))
    return found


@njit(cache=True, nogil=True)
def _assign(thread, threads, rows, centroids, count, found):  # type: ignore[no-untyped-def]
    out = np.empty((4, TILE * LANES), np.int32)
    best = np.empty(64, np.int32)
    for at in range(64 * thread, len(rows), 64 * threads):
        stop = min(at + 64, len(rows))
        best[:] = np.iinfo(np.int32).min
        for tile in range(0, len(centroids), TILE):
            end = min(tile + TILE, len(centroids))
            width = min((end - tile) * LANES, count - tile * LANES)
            for a in range(at, stop, 4):
                last = stop - 1
                b, c, d = min(a + 1, last), min(a + 2, last), min(a + 3, last)
                four_products(rows, a, b, c, d, centroids, tile, end, out)
                for i in range(min(4, stop - a)):
                    for block in range(0, width, LANES):
                        lanes = lanes_from(out, i, block, best[a + i - at])
                        while lanes:
                            j = block + lowest(lanes)
                            lanes &= lanes - 1
                            if j < width and out[i, j] > best[a + i - at]:
                                best[a + i - at] = out[i, j]
                                found[a + i] = tile * LANES + j


def make_lists(
    rows: np.ndarray, centroids: np.ndarray, advance: Advance = lambda done: None
) -> Lists:
    """Groups rows by their most similar centroid. Long lists, as of equal rows, are split by id, so
    that the cost of a search is bounded."""
    N, count = len(rows), len(centroids)
    list_of = assign(rows, centroids, advance)
    order = np.argsort(list_of, kind="stable")
    sizes = np.bincount(list_of, minlength=count)
    longest = LONGEST * -(-N // count)
    parts = -(-sizes // longest)  # 0 for an empty list
    pieces = np.concatenate([[0], np.cumsum(parts)])
    lengths = np.full(pieces[-1], longest)
    lengths[pieces[1:][parts > 0] - 1] = (sizes - (parts - 1) * longest)[parts > 0]
    starts = np.concatenate([[0], np.cumsum(-(-lengths // LANES))])
    members = np.full(starts[-1] * LANES, -1, dtype=np.int32)
    before = np.cumsum(lengths) - lengths
    members[np.repeat(starts[:-1] * LANES - before, lengths) + np.arange(N)] = order
    groups = in_groups(rows, members)
    return Lists(_in_groups(centroids), count, pieces, starts, members, groups)
