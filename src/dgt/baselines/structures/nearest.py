"""Approximate nearest rows of a large dense matrix by distance, with faiss."""

from collections.abc import Iterator
from contextlib import contextmanager

import faiss
import numpy as np

from dgt.system import threads

# With these values, a search reads a thirtieth of 169,343 rows.
LISTS_PER_ROOT = 2.5
PROBES = 32
TRAINING_ROWS_PER_LIST = 64
QUERIES = 64


class DistanceIndex:
    """Finds nearly all of the nearest rows.

    The result does not depend on the number of threads: faiss uses one, and our threads share
    groups of queries of a fixed size.

    Args:
        rows: The rows, float32 ``(N, F)``.
    """

    def __init__(self, rows: np.ndarray) -> None:
        lists = max(1, int(LISTS_PER_ROOT * len(rows) ** 0.5))
        self.rows = np.ascontiguousarray(rows)
        quantizer = faiss.IndexFlat(rows.shape[1], faiss.METRIC_L2)
        self.index = faiss.IndexIVFFlat(quantizer, rows.shape[1], lists, faiss.METRIC_L2)
        self.index.nprobe = PROBES
        self.index.cp.seed = 0
        self.index.cp.niter = 10
        self.index.cp.max_points_per_centroid = TRAINING_ROWS_PER_LIST
        with _one_faiss_thread():
            self.index.train(self.rows)
            self.index.add(self.rows)

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
