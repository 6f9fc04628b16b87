"""Approximate nearest neighbors among the rows of a large sparse matrix."""

from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from dgt.errors import InputError
from dgt.sequences.sparse_lists import centroid_products, make_lists, sparse_rows, train, work
from dgt.sequences.top import insert
from dgt.storage import segments
from dgt.system import threads
from dgt.system.progress import progress_bar

LISTS_PER_ROOT = 0.5
# Rows that a search compares with. Independent of N, so that the time grows nearly linearly.
COMPARED = (12_500, 25_000, 50_000, 100_000)
# Share of the pairs of entries in the same column that a search multiplies.
SHARES = (0.25, 0.5, 1.0)
# Sums whose largest one is compared first.
BLOCK = 128


class Effort(NamedTuple):
    """How thoroughly to search."""

    compared: int
    share: float


class SparseIndex:
    """Finds nearly all of the rows with the largest products, like
    :class:`~dgt.sequences.index.RowIndex` for sparse rows.

    Rows are grouped into lists of similar rows, each with an inverted file: for each column the
    rows of the list with a value there. A search goes through the columns of a row in the lists of
    the nearest centroids, and the sums for a list fit into the fastest cache. As rows share few
    columns, this compares far more rows than products of dense rows do in the same time. Columns
    that tell the rows apart least for their length, as those of common words, can be left out.

    Sums are added in a fixed order, so the result does not depend on the number of threads or on
    which rows search together.

    Args:
        unit: Rows of equal norm, or of norm 0, ``(N, F)``.
        norm: Their norm.
        cache: File for the trained centroids, which other processes then do not train again.
    """

    def __init__(
        self, unit: scipy.sparse.csr_array, norm: float, cache: Path | None = None
    ) -> None:
        N = unit.shape[0]
        scaled = (unit / norm).astype(np.float32)
        self.rows = sparse_rows(scaled)
        kept = None if cache is None else segments.read_arrays(cache)
        count = max(1, int(LISTS_PER_ROOT * N**0.5))
        with progress_bar("Grouping similar nodes", work(N, count)) as advance:
            centroids = train(scaled, count, advance) if kept is None else kept[0]
            if cache is not None and kept is None:
                with suppress(InputError):
                    segments.write_arrays(cache, [centroids])
            self.lists = make_lists(self.rows, centroids, advance)
        # For each column its number of entries, and per entry the variance of its values.
        self.sizes = np.bincount(self.rows.columns, minlength=unit.shape[1])
        several = np.maximum(self.sizes, 1)
        squares, sums = (
            np.bincount(
                self.rows.columns, self.rows.values.astype(np.float64) ** power, len(several)
            )
            for power in (2, 1)
        )
        self.variances = squares / several - sums**2 / (several * max(N, 1))
        self.num_rows = N
        self.everything = Effort(N, 1.0)

    def efforts(self) -> list[Effort]:
        """Returns how thoroughly a search may go through the rows."""
        N = self.everything.compared
        compared = sorted({min(N, each) for each in COMPARED})
        return [Effort(each, share) for each in compared for share in SHARES]

    def nearest(self, bases: np.ndarray, count: int, effort: Effort) -> tuple[np.ndarray, int]:
        """Returns the rows with the largest positive products with some rows, without these
        themselves.

        Args:
            bases: Indices of the rows, int64 ``(B,)``.
            count: How many to return.
            effort: How thoroughly to search.

        Returns:
            The rows, int32 ``(B, count)``, padded with -1, and the cost of the search, which grows
            with its time.
        """
        found = np.full((len(bases), count), -1, dtype=np.int32)
        tasks = -(-len(bases) // 64)
        by = self.rows, self.lists, self.sizes, self.variances
        return found, sum(threads.run(_search, tasks, *by, *effort, bases, found))


@njit(cache=True, nogil=True, fastmath=True)
def _largest(values):  # type: ignore[no-untyped-def]
    largest = np.float32(0)
    for i in range(len(values)):
        largest = max(largest, values[i])
    return largest


@njit(cache=True, nogil=True)
def _search(  # type: ignore[no-untyped-def]
    thread, threads, rows, lists, sizes, variances, compared, share, bases, found
):
    """Searches for some base rows, and returns the number of sums and scores."""
    part = -(-len(bases) // threads)
    bases, found = bases[thread * part :][:part], found[thread * part :][:part]
    B, room = found.shape
    F, num_lists = lists.centroids.shape
    longest = 0
    for piece in range(num_lists):
        longest = max(longest, lists.starts[piece + 1] - lists.starts[piece])

    # The wave in which a base row searches a list, if at all: first that of the nearest centroid,
    # whose rows let it skip most of the others, then those of the next ones.
    chosen = np.zeros((num_lists, B), np.int8)
    products = np.empty(num_lists, np.float32)
    for q in range(B):
        centroid_products(rows, bases[q], lists.centroids, products)
        left = compared
        for piece in np.argsort(-products, kind="mergesort"):
            chosen[piece, q] = 1 if left == compared else 2
            left -= lists.starts[piece + 1] - lists.starts[piece]
            if left <= 0:
                break

    # The entries of each base row that are used, the most telling ones first.
    ends = np.zeros(B + 1, np.int64)
    for q in range(B):
        ends[q + 1] = ends[q] + rows.ptr[bases[q] + 1] - rows.ptr[bases[q]]
    entries = np.empty(ends[B], np.int64)
    last = ends[:-1].copy()
    for q in range(B):
        begin, end = rows.ptr[bases[q]], rows.ptr[bases[q] + 1]
        own = rows.columns[begin:end]
        pairs = share * sizes[own].sum()
        telling = rows.values[begin:end].astype(np.float64) ** 2 * variances[own]
        for e in np.argsort(-telling, kind="mergesort"):
            if pairs <= 0:
                break
            entries[last[q]] = begin + e
            last[q] += 1
            pairs -= sizes[own[e]]

    cost = 0
    first, stop = np.zeros(F, np.int64), np.zeros(F, np.int64)
    sums = np.zeros(longest, np.float32)
    scores = np.empty(found.shape, np.float32)
    filled = np.zeros(B, np.int64)
    for turn in range(2 * num_lists):
        wave, piece = 1 + turn // num_lists, turn % num_lists
        start, size = lists.starts[piece], lists.starts[piece + 1] - lists.starts[piece]
        columns = range(lists.column_starts[piece], lists.column_starts[piece + 1])
        for c in columns:
            first[lists.columns[c]] = lists.entry_starts[c]
            stop[lists.columns[c]] = lists.entry_starts[c + 1]
        for q in range(B):
            if chosen[piece, q] != wave:
                continue
            base = bases[q]
            for at in range(ends[q], last[q]):
                column, value = rows.columns[entries[at]], rows.values[entries[at]]
                cost += stop[column] - first[column]
                for i in range(first[column], stop[column]):
                    sums[lists.places[i]] += value * lists.values[i]
            kept, own, number = found[q], scores[q], filled[q]
            least = own[room - 1] if number == room else np.float32(0)
            for block in range(0, size, BLOCK):
                end = min(block + BLOCK, size)
                largest = _largest(sums[block:end])
                if largest <= 0 or largest < least:
                    continue
                for j in range(block, end):
                    if sums[j] > 0 and sums[j] >= least and lists.members[start + j] != base:
                        number = insert(kept, own, number, lists.members[start + j], sums[j])
                        least = own[room - 1] if number == room else np.float32(0)
            sums[:size] = 0
            filled[q] = number
            cost += size // 8
        for c in columns:
            first[lists.columns[c]] = 0
            stop[lists.columns[c]] = 0
    return cost
