"""Approximate nearest neighbors among the rows of a large dense matrix, with faiss."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import faiss
import numpy as np

from dgt.errors import InputError
from dgt.storage import segments
from dgt.system import threads

# Above this number of rows, an index is faster than the product of all pairs of rows.
EXACT_NODES = 40_000
# With these values, a search reads a thirtieth of 169,343 rows.
LISTS_PER_ROOT = 2.5
PROBES = 32
TRAINING_ROWS_PER_LIST = 64
QUERIES = 64


class RowIndex:
    """Finds nearly all of the rows with the largest inner product or the smallest distance.

    The result does not depend on the number of threads: faiss uses one, and our threads share
    groups of queries of a fixed size.

    Args:
        rows: The rows, float32 ``(N, F)``.
        cache: File for the trained centroids, which other processes then do not train again.
        distance: Use the Euclidean distance instead of the inner product.
    """

    def __init__(self, rows: np.ndarray, cache: Path | None = None, distance: bool = False) -> None:
        lists = max(1, int(LISTS_PER_ROOT * len(rows) ** 0.5))
        self.rows = np.ascontiguousarray(rows)
        metric = faiss.METRIC_L2 if distance else faiss.METRIC_INNER_PRODUCT
        quantizer = faiss.IndexFlat(rows.shape[1], metric)
        centroids = None if cache is None else segments.read_arrays(cache)
        if centroids is not None:
            quantizer.add(centroids[0])  # train() then has nothing left to do
        self.index = faiss.IndexIVFFlat(quantizer, rows.shape[1], lists, metric)
        self.index.nprobe = PROBES
        self.index.cp.seed = 0
        self.index.cp.niter = 10
        self.index.cp.max_points_per_centroid = TRAINING_ROWS_PER_LIST
        with _one_faiss_thread():
            self.index.train(self.rows)
            self.index.add(self.rows)
        if cache is not None and centroids is None:
            with suppress(InputError):
                segments.write_arrays(cache, [quantizer.reconstruct_n(0, lists)])

    def nearest(self, start: int, stop: int, count: int) -> np.ndarray:
        """Returns the nearest rows of each row from ``start`` to ``stop``.

        Returns:
            int64 ``(stop - start, count)``, padded with -1.
        """
        found = np.empty((stop - start, count), dtype=np.int64)

        def search(thread: int, threads: int) -> None:
            with _one_faiss_thread():
                for at in range(thread * QUERIES, stop - start, threads * QUERIES):
                    end = min(at + QUERIES, stop - start)
                    _, found[at:end] = self.index.search(self.rows[start + at : start + end], count)

        threads.run(search, -(-(stop - start) // QUERIES))
        return found


@contextmanager
def _one_faiss_thread() -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
