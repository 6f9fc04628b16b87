"""Groups the rows of a large sparse matrix into lists of similar rows, by k-means."""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from dgt.storage.segments import Advance
from dgt.system import threads

ROUNDS = 4
# Rows that are assigned between two calls of ``advance``.
CHUNK = 2**14
TRAINING_ROWS_PER_LIST = 128
# A list with more rows than this multiple of the mean is split.
LONGEST = 2


class SparseRows(NamedTuple):
    """A sparse matrix by row."""

    ptr: np.ndarray  # int64 (N + 1,)
    columns: np.ndarray  # int32 (E,)
    values: np.ndarray  # float32 (E,)


class SparseLists(NamedTuple):
    """Lists of rows. Each list has the columns that occur in it, and for each of these the rows."""

    centroids: np.ndarray  # float32 (F, K)
    starts: np.ndarray  # int64 (K + 1,), first place of each list
    members: np.ndarray  # int32 (N,), rows by list
    column_starts: np.ndarray  # int64 (K + 1,), first of the columns of each list
    columns: np.ndarray  # int32 (C,)
    entry_starts: np.ndarray  # int64 (C + 1,), first entry of each of these columns
    places: np.ndarray  # uint32 (E,), for each entry its row's place in the list
    values: np.ndarray  # float32 (E,)


def work(num_rows: int, count: int) -> int:
    """Returns how many rows :func:`train` and :func:`make_lists` assign, about."""
    return ROUNDS * min(num_rows, count * TRAINING_ROWS_PER_LIST) + num_rows


def train(
    rows: scipy.sparse.csr_array, count: int, advance: Advance = lambda done: None
) -> np.ndarray:
    """Returns centroids by k-means, from a sample of rows. They do not depend on the number of
    threads.

    Args:
        rows: Rows of norm 1 or 0, float32 ``(N, F)``.
        count: Number of centroids K.
        advance: Called with the number of rows assigned since the last call.

    Returns:
        float32 ``(F, K)``, with columns of norm 1 or 0.
    """
    random = np.random.Generator(np.random.PCG64(0))
    filled = random.permutation(np.flatnonzero(np.diff(rows.indptr)))
    sample = rows[filled[: count * TRAINING_ROWS_PER_LIST]]
    centroids = np.zeros((rows.shape[1], count), dtype=np.float32)
    first = sample[:count].toarray()
    centroids[:, : len(first)] = first.T
    for _ in range(ROUNDS):
        own = assign(sparse_rows(sample), centroids, advance)
        ones = np.ones(len(own), dtype=np.float32)
        members = scipy.sparse.csr_array((ones, (own, np.arange(len(own)))), (count, len(own)))
        sums = (members @ sample).toarray()
        norms = np.sqrt((sums.astype(np.float64) ** 2).sum(axis=1))
        kept = norms > 0  # an empty list keeps its centroid
        centroids[:, kept] = (sums[kept] / norms[kept, None]).T
    return centroids


def sparse_rows(rows: scipy.sparse.csr_array) -> SparseRows:
    return SparseRows(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float32)
    )


def assign(
    rows: SparseRows, centroids: np.ndarray, advance: Advance = lambda done: None
) -> np.ndarray:
    """Returns the most similar centroid of each row, int32 ``(N,)``."""
    found = np.empty(len(rows.ptr) - 1, dtype=np.int32)
    for at in range(0, len(found), CHUNK):
        own, out = rows._replace(ptr=rows.ptr[at : at + CHUNK + 1]), found[at : at + CHUNK]
        threads.run(_assign, len(out), own, centroids, out)
        advance(len(out))
    return found


@njit(cache=True, nogil=True)
def centroid_products(rows, row, centroids, out):  # type: ignore[no-untyped-def]
    """Computes the products of a row with all centroids. Every sum has a fixed order."""
    out[:] = 0
    for e in range(rows.ptr[row], rows.ptr[row + 1]):
        value, own = rows.values[e], centroids[rows.columns[e]]
        for k in range(len(out)):
            out[k] += value * own[k]


@njit(cache=True, nogil=True)
def _assign(thread, threads, rows, centroids, found):  # type: ignore[no-untyped-def]
    products = np.empty(centroids.shape[1], np.float32)
    part = -(-len(found) // threads)
    for row in range(thread * part, min(len(found), (thread + 1) * part)):
        centroid_products(rows, row, centroids, products)
        found[row] = np.argmax(products)


def make_lists(
    rows: SparseRows, centroids: np.ndarray, advance: Advance = lambda done: None
) -> SparseLists:
    """Groups rows by their most similar centroid. A list that is too long is split by id: its parts
    have the same centroid, so that the cost of a search is bounded."""
    count = centroids.shape[1]
    N = len(rows.ptr) - 1
    list_of = assign(rows, centroids, advance).astype(np.int64)
    members = np.argsort(list_of, kind="stable").astype(np.int32)
    sizes = np.bincount(list_of, minlength=count)
    longest = LONGEST * -(-N // count)
    parts = np.maximum(1, -(-sizes // longest))
    owner = np.repeat(np.arange(count), parts)  # centroid of each part
    part = np.arange(len(owner)) - np.repeat(np.cumsum(parts) - parts, parts)
    lengths = np.minimum(longest, sizes[owner] - part * longest)
    starts = np.concatenate([[0], np.cumsum(lengths)])

    order = np.repeat(rows.ptr[members], np.diff(rows.ptr)[members])
    within = np.diff(rows.ptr)[members]
    order += np.arange(len(order)) - np.repeat(np.cumsum(within) - within, within)
    piece = np.repeat(np.arange(len(owner)), lengths)
    place = np.arange(N) - starts[piece]
    # By list, then by column, then by row.
    entry_piece = np.repeat(piece, within)
    key = entry_piece * np.int64(centroids.shape[0]) + rows.columns[order]
    by = np.argsort(key, kind="stable")
    key = key[by]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else by
    heads = key[first]
    return SparseLists(
        centroids=np.ascontiguousarray(centroids[:, owner]),
        starts=starts,
        members=members,
        column_starts=np.searchsorted(heads, np.arange(len(owner) + 1) * centroids.shape[0]),
        columns=(heads % centroids.shape[0]).astype(np.int32),
        entry_starts=np.concatenate([first, [len(key)]]),
        places=np.repeat(place, within)[by].astype(np.uint32),
        values=rows.values[order[by]],
    )
