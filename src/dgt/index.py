"""The nearest rows of a large dense matrix, by a faiss index."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import faiss
import numpy as np

from dgt import blocks, threads
from dgt.errors import InputError

# Above this many rows, an index is faster than the product of all rows with all.
EXACT_NODES = 40_000
# With these, a search reads a thirtieth of 169,343 rows.
LISTS_PER_ROOT = 2.5
PROBES = 32
TRAINING_ROWS_PER_LIST = 64
BLOCK = 64


class RowIndex:
    """Finds the rows of largest inner product, or of smallest distance, nearly always.

    The result does not depend on the number of threads: faiss runs on one, and what is split over
    ours are blocks of a fixed size.

    Args:
        rows: float32 [N, F].
        kept: file for what is learnt of the rows, so that other processes need not learn it again.
        distance: go by distance.
    """

    def __init__(self, rows: np.ndarray, kept: Path | None = None, distance: bool = False) -> None:
        lists = max(1, int(LISTS_PER_ROOT * len(rows) ** 0.5))
        self.rows = np.ascontiguousarray(rows)
        metric = faiss.METRIC_L2 if distance else faiss.METRIC_INNER_PRODUCT
        quantizer = faiss.IndexFlat(rows.shape[1], metric)
        known = None if kept is None else blocks.read_arrays(kept)
        if known is not None:
            quantizer.add(known[0])  # training then finds nothing left to do
        self.index = faiss.IndexIVFFlat(quantizer, rows.shape[1], lists, metric)
        self.index.nprobe = PROBES
        self.index.cp.seed = 0
        self.index.cp.niter = 10
        self.index.cp.max_points_per_centroid = TRAINING_ROWS_PER_LIST
        with _one_faiss_thread():
            self.index.train(self.rows)
            self.index.add(self.rows)
        if kept is not None and known is None:
            with suppress(InputError):
                blocks.write_arrays(kept, [quantizer.reconstruct_n(0, lists)])

    def nearest(self, start: int, stop: int, count: int) -> np.ndarray:
        """Of the rows from ``start`` to ``stop``, the nearest rows, [stop - start, count]; -1 where
        there are fewer."""
        found = np.empty((stop - start, count), dtype=np.int64)

        def search(thread: int, threads: int) -> None:
            with _one_faiss_thread():
                for at in range(thread * BLOCK, stop - start, threads * BLOCK):
                    end = min(at + BLOCK, stop - start)
                    _, found[at:end] = self.index.search(self.rows[start + at : start + end], count)

        threads.run(search, -(-(stop - start) // BLOCK))
        return found


@contextmanager
def _one_faiss_thread() -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)
