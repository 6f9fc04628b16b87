"""Finds the most similar rows of a large matrix by an index and sorts them by exact products."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from dgt.sequences.index import RowIndex
from dgt.sequences.sparse_index import SparseIndex
from dgt.sequences.top import insert
from dgt.sequences.unit import UNIT, on_grid
from dgt.system import threads
from dgt.system.progress import progress_bar

# Rows for which the recall of an index is measured.
MEASURED = 200
# The recall up to which an index searches more thoroughly.
ENOUGH = 0.95


class Chosen(NamedTuple):
    """How thoroughly to search, and the share of the most similar rows that is then found."""

    effort: Any
    recall: float


class Candidates:
    """Sorts the rows that an index finds.

    Args:
        index: The index.
        sort: Compiled function that sorts candidates, for :func:`dgt.system.threads.run`.
        unit: Its first arguments.
        wanted: How many candidates the index has to find for sequences of a length.
    """

    def __init__(
        self,
        index: RowIndex | SparseIndex,
        sort: Callable[..., None],
        unit: tuple[Any, ...],
        wanted: Callable[[int], int],
    ) -> None:
        self.index = index
        self._sort = sort
        self._unit = unit
        self._wanted = wanted
        self._chosen: dict[int, Chosen] = {}

    def sort(
        self, bases: np.ndarray, sequences: np.ndarray, scores: np.ndarray, effort: Any = None
    ) -> int:
        """Writes the most similar rows of some rows, and returns the cost of the search.

        Args:
            bases: The rows, int64 ``(B,)``.
            sequences: Output, int32 ``(B, L)``, filled with -1.
            scores: Output, float64 ``(B, L)``, filled with 0.
            effort: How thoroughly to search (default: the one of :meth:`chosen`).
        """
        length = sequences.shape[1]
        effort = self.chosen(length).effort if effort is None else effort
        candidates, cost = self.index.nearest(bases, self._wanted(length), effort)
        threads.run(self._sort, len(bases), *self._unit, candidates, bases, sequences, scores)
        return cost

    def chosen(self, length: int) -> Chosen:
        """Returns the cheapest effort that finds enough of the most similar rows of a sample, or
        the one that finds most of them. The cost is counted, not timed, so that the choice is
        always the same."""
        if length not in self._chosen:
            N = self.index.num_rows
            sample = np.random.Generator(np.random.PCG64(0)).permutation(N)[:MEASURED]
            efforts = self.index.efforts()
            tried: list[tuple[float, int, int, Chosen]] = []
            with progress_bar("Measuring the recall of similarity", 1 + len(efforts)) as advance:
                exact, _ = self._scores(sample, length, self.index.everything)
                advance(1)
                for effort in efforts:
                    scores, cost = self._scores(sample, length, effort)
                    recall = _share(exact, scores)
                    tried.append((-min(recall, ENOUGH), cost, len(tried), Chosen(effort, recall)))
                    advance(1)
            self._chosen[length] = min(tried)[-1]
        return self._chosen[length]

    def _scores(self, bases: np.ndarray, length: int, effort: Any) -> tuple[np.ndarray, int]:
        sequences = np.full((len(bases), length), -1, dtype=np.int32)
        scores = np.zeros(sequences.shape)
        cost = self.sort(bases, sequences, scores, effort)
        return scores[:, 1:], cost


def _share(exact: np.ndarray, found: np.ndarray) -> float:
    """Returns the share of the most similar rows that were found, by the similarities. Equal ones
    count, whichever row has them."""
    least = np.where(exact > 0, exact, np.inf).min(axis=1, keepdims=True, initial=np.inf)
    wanted = (exact > 0).sum()
    return float(((found >= least) & (found > 0)).sum() / wanted) if wanted else 1.0


def dense_candidates(unit: np.ndarray, cache: Path | None = None) -> Candidates:
    """Sorts the rows of a dense matrix.

    Args:
        unit: Rows from :func:`~dgt.sequences.unit.unit_rows`, int32 ``(N, F)``.
        cache: File for the trained centroids.
    """
    # A few more candidates than needed, as the index rounds rows.
    index = RowIndex(unit, UNIT, cache)
    return Candidates(index, _sort_dense, (unit,), lambda length: length + length // 2 + 8)


def sparse_candidates(unit: scipy.sparse.csr_array, cache: Path | None = None) -> Candidates:
    """Like :func:`dense_candidates`, for a sparse matrix."""
    rows = unit.indptr.astype(np.int64), unit.indices.astype(np.int32), unit.data
    # The index may leave out columns.
    index = SparseIndex(unit, UNIT, cache)
    return Candidates(index, _sort_sparse, (*rows, unit.shape[1]), lambda length: 2 * length + 32)


@njit(cache=True, nogil=True, fastmath={"reassoc"})
def _product(x, y):  # type: ignore[no-untyped-def]
    """A product of unit rows, exact in any order of summation."""
    product = 0.0
    for f in range(len(x)):
        product += np.float64(x[f]) * np.float64(y[f])
    return product


@njit(cache=True, nogil=True)
def _sort_dense(  # type: ignore[no-untyped-def]
    thread, threads, unit, candidates, bases, sequences, scores
):
    """Sorts a few candidates, padded with -1, for some base nodes."""
    for b in range(thread, len(sequences), threads):
        base = bases[b]
        filled = insert(sequences[b], scores[b], 0, base, np.inf)
        for node in candidates[b]:
            if node >= 0 and node != base:
                score = on_grid(_product(unit[base], unit[node]))
                if score > 0:
                    filled = insert(sequences[b], scores[b], filled, node, score)


@njit(cache=True, nogil=True)
def _sort_sparse(  # type: ignore[no-untyped-def]
    thread, threads, ptr, columns, values, F, candidates, bases, sequences, scores
):
    own = np.zeros(F)
    for b in range(thread, len(sequences), threads):
        base = bases[b]
        for e in range(ptr[base], ptr[base + 1]):
            own[columns[e]] = values[e]
        filled = insert(sequences[b], scores[b], 0, base, np.inf)
        for node in candidates[b]:
            if node >= 0 and node != base:
                product = 0.0
                for e in range(ptr[node], ptr[node + 1]):
                    product += own[columns[e]] * values[e]
                score = on_grid(product)
                if score > 0:
                    filled = insert(sequences[b], scores[b], filled, node, score)
        for e in range(ptr[base], ptr[base + 1]):
            own[columns[e]] = 0
