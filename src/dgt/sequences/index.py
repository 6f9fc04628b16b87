"""Approximate nearest neighbors among the rows of a large dense matrix."""

from contextlib import suppress
from pathlib import Path

import numpy as np
from numba import njit

from dgt.errors import InputError
from dgt.sequences.lists import TILE, make_lists, train, work
from dgt.sequences.products import LANES, four_products, lanes_from, lowest, rounded_rows
from dgt.sequences.top import insert
from dgt.storage import segments
from dgt.system import threads
from dgt.system.progress import progress_bar

# Above this number of rows, an index is faster than the product of all pairs of rows.
EXACT_NODES = 40_000
LISTS_PER_ROOT = 2.5
# Rows that a search compares with. Independent of N, so that the time grows nearly linearly.
COMPARED = 4000
# A search may compare with up to this multiple of them, as long as it takes at most so many
# multiplications per row.
MOST_TIMES = 4
MOST_PRODUCTS = 2**20
NONE = np.int32(-(2**31))  # below all products
# The part of its lists, the nearest ones, that a row searches before the others.
FIRST = 16


class RowIndex:
    """Finds nearly all of the rows with the largest products.

    Rows are grouped into lists of similar rows, and a search compares a row with those in the lists
    of the nearest centroids. Rows that search the same list are multiplied by it together, which is
    several times faster than one by one. Rows are rounded to integers, whose products are exact, so
    the result does not depend on the number of threads or on which rows search together.

    Args:
        unit: Rows of equal norm, ``(N, F)``.
        norm: Their norm.
        cache: File for the trained centroids, which other processes then do not train again.
    """

    def __init__(self, unit: np.ndarray, norm: float, cache: Path | None = None) -> None:
        self.rows = rounded_rows(unit, norm)
        kept = None if cache is None else segments.read_arrays(cache)
        count = max(1, int(LISTS_PER_ROOT * len(unit) ** 0.5))
        total = work(len(unit), count)
        with progress_bar("Grouping similar nodes", total) as advance:
            centroids = train(self.rows, count, advance) if kept is None else kept[0]
            if cache is not None and kept is None:
                with suppress(InputError):
                    segments.write_arrays(cache, [centroids])
            self.lists = make_lists(self.rows, centroids, advance)
        self.num_rows = len(unit)
        self.everything = count

    def efforts(self) -> list[int]:
        """Returns the numbers of lists that a search may go through."""
        N, F = self.rows.shape
        most = max(COMPARED, min(MOST_TIMES * COMPARED, MOST_PRODUCTS // F))
        times = [2**i for i in range(MOST_TIMES) if COMPARED * 2**i <= most]
        probes = (max(1, round(COMPARED * each * self.everything / N)) for each in times)
        return sorted({min(self.everything, each) for each in probes})

    def nearest(self, bases: np.ndarray, count: int, probes: int) -> tuple[np.ndarray, int]:
        """Returns the rows with the largest products with some rows, without these themselves.

        Args:
            bases: Indices of the rows, int64 ``(B,)``.
            count: How many to return.
            probes: Number of lists to search.

        Returns:
            The rows, int32 ``(B, count)``, padded with -1, and the cost of the search, which grows
            with its time.
        """
        found = np.full((len(bases), count), -1, dtype=np.int32)
        tasks = -(-len(bases) // 64)
        threads.run(_search, tasks, self.rows, self.lists, probes, bases, found)
        return found, probes * len(bases)


@njit(cache=True, nogil=True)
def _search(thread, threads, rows, lists, probes, bases, found):  # type: ignore[no-untyped-def]
    part = -(-len(bases) // threads)
    bases, found = bases[thread * part :][:part], found[thread * part :][:part]
    B, num_lists = len(bases), len(lists.starts) - 1
    longest = TILE
    for at in range(num_lists):
        longest = max(longest, lists.starts[at + 1] - lists.starts[at])
    out = np.empty((4, longest * LANES), np.int32)

    # The nearest centroids of each base row.
    near = np.empty((B, probes), np.int32)
    near_scores = np.empty((B, probes), np.int32)
    filled = np.zeros(B, np.int64)
    for group in range(0, B, 64):
        stop = min(group + 64, B)
        for tile in range(0, len(lists.centroids), TILE):
            end = min(tile + TILE, len(lists.centroids))
            width = min((end - tile) * LANES, lists.num_centroids - tile * LANES)
            for q in range(group, stop, 4):
                b, c, d = min(q + 1, B - 1), min(q + 2, B - 1), min(q + 3, B - 1)
                own = bases[q], bases[b], bases[c], bases[d]
                four_products(rows, *own, lists.centroids, tile, end, out)
                for i in range(min(4, stop - q)):
                    at = q + i
                    kept, scores, size = near[at], near_scores[at], filled[at]
                    least = scores[probes - 1] if size == probes else NONE
                    for block in range(0, width, LANES):
                        lanes = lanes_from(out, i, block, least)
                        while lanes:
                            j = block + lowest(lanes)
                            lanes &= lanes - 1
                            if j < width and out[i, j] >= least:
                                centroid = tile * LANES + j
                                size = insert(kept, scores, size, centroid, out[i, j])
                                least = scores[probes - 1] if size == probes else NONE
                    filled[at] = size

    # Their lists, up to the number of probes, and the base rows that search each list.
    most = probes if probes < lists.num_centroids else num_lists
    chosen = np.empty((B, most), np.int32)
    sizes = np.zeros(2 * num_lists + 1, np.int64)
    for q in range(B):
        size = 0
        for i in range(probes):
            # The nearest lists come first, as their rows let most others be skipped.
            turn = 0 if i <= probes // FIRST else num_lists
            for piece in range(lists.pieces[near[q, i]], lists.pieces[near[q, i] + 1]):
                if size < most:
                    chosen[q, size] = turn + piece
                    sizes[turn + piece + 1] += 1
                    size += 1
        filled[q] = size
    ends = np.cumsum(sizes)
    searching = np.empty(ends[-1], np.int32)
    place = ends[:-1].copy()
    for q in range(B):
        for i in range(filled[q]):
            turn = chosen[q, i]
            searching[place[turn]] = q
            place[turn] += 1

    scores = np.empty(found.shape, np.int32)
    filled[:] = 0
    room = found.shape[1]
    for turn in range(2 * num_lists):
        piece = turn % num_lists
        start, stop = lists.starts[piece], lists.starts[piece + 1]
        members = lists.members[start * LANES : stop * LANES]
        last = ends[turn + 1] - 1
        for at in range(ends[turn], last + 1, 4):
            a, b = searching[at], searching[min(at + 1, last)]
            c, d = searching[min(at + 2, last)], searching[min(at + 3, last)]
            own = bases[a], bases[b], bases[c], bases[d]
            four_products(rows, *own, lists.groups, start, stop, out)
            for i in range(min(4, last + 1 - at)):
                q = searching[at + i]
                kept, best, size, base = found[q], scores[q], filled[q], bases[q]
                least = best[room - 1] if size == room else NONE
                for block in range(0, len(members), LANES):
                    lanes = lanes_from(out, i, block, least)
                    while lanes:
                        j = block + lowest(lanes)
                        lanes &= lanes - 1
                        node = members[j]
                        if out[i, j] >= least and node >= 0 and node != base:
                            size = insert(kept, best, size, node, out[i, j])
                            least = best[room - 1] if size == room else NONE
                filled[q] = size
