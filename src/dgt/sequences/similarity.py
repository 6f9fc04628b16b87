"""Sequences by feature similarity."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numba import njit
from torch import Tensor

from dgt.config import SequenceConfig
from dgt.sequences.closeness import of_cosines
from dgt.sequences.criterion import Criterion, Graph, Sort
from dgt.sequences.index import EXACT_NODES, VERSION, RowIndex
from dgt.sequences.similarity_on_device import most_similar
from dgt.sequences.top import insert
from dgt.system import threads

log = logging.getLogger("dgt")

CHUNK = 512
# Base nodes at a time with an index: the more, the more of them search the same lists.
LARGE_CHUNK = 8192
# Nodes for which the recall of an index is measured.
MEASURED = 200

# Unit vectors are rounded to multiples of 1 / UNIT. Their products, in units of 1 / UNIT ** 2, are
# integers below 2 ** 53 and thus exact in float64, in any order of summation. The result does not
# depend on the chunk size, the number of threads or the machine.
UNIT = 2.0**26
# Similarities are rounded to multiples of 1 / GRID, about six decimals; equal ones tie.
GRID = 2.0**20


class UnitRows:
    """Features with rows of norm 1, in the form that :func:`similarity_sequences` searches.

    Args:
        x: Finite features, dense or sparse, shape ``(N, F)``.
        cache: File for the centroids of the index of a large dense matrix.
    """

    def __init__(self, x: np.ndarray | scipy.sparse.csr_array, cache: Path | None = None) -> None:
        self.num_nodes = x.shape[0]
        self.is_dense = isinstance(x, np.ndarray)
        self.index: RowIndex | None = None
        if self.is_dense and self.num_nodes > EXACT_NODES:
            # Half the memory of float64, with the same products.
            self.dense = np.empty(x.shape, dtype=np.int32)
            for at in range(0, self.num_nodes, LARGE_CHUNK):
                self.dense[at : at + LARGE_CHUNK] = unit_rows(x[at : at + LARGE_CHUNK])
            self.index = RowIndex(self.dense, UNIT, cache)
        elif self.is_dense:
            self.dense = unit_rows(x)
            self.on_gpu: Tensor | None = None
            if torch.cuda.is_available():
                self.on_gpu = torch.from_numpy(self.dense).to("cuda")
        else:
            rows = unit_rows(x)
            columns = rows.tocsc()
            self.by_row = (rows.indptr, rows.indices, rows.data)
            self.by_column = (columns.indptr, columns.indices, columns.data)


def similarity_sequences(
    rows: UnitRows, length: int, advance: Callable[[int], None], bases: range | None = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""The nodes most similar to each base node by the cosine similarity of their features,

    .. math::
        \mathbf{x}_b^{\top} \mathbf{x}_i / (\|\mathbf{x}_b\| \|\mathbf{x}_i\|)

    by descending similarity, ties by id. The base node comes first. Only nodes with a positive
    similarity are kept. A node with all-zero features is therefore alone in its sequence.

    The result is exact, except for dense features of more than ``EXACT_NODES`` nodes. There, an
    index finds nearly all of the most similar nodes if the features form clusters; :func:`recall`
    measures how many.

    Args:
        rows: The features.
        length: Length L of the sequences.
        advance: Called with the number of base nodes processed since the last call.
        bases: Ids of the base nodes (default: all N).

    Returns:
        The nodes, int32 ``(N, L)``, padded with -1, and their similarities, float32 ``(N, L)``.
    """
    bases = range(rows.num_nodes) if bases is None else bases
    sequences = np.full((len(bases), length), -1, dtype=np.int32)
    scores = np.zeros((len(bases), length))
    chunk = CHUNK if rows.index is None else LARGE_CHUNK
    for at in range(0, len(bases), chunk):
        part, out = sequences[at : at + chunk], scores[at : at + chunk]
        start = bases[at]
        if rows.index is not None:
            own = np.arange(start, start + len(part))
            candidates = rows.index.nearest(own, _candidates(length))
            threads.run(_sort_candidates, len(part), rows.dense, candidates, own, part, out)
        elif not rows.is_dense:
            by = (rows.by_row, rows.by_column)
            threads.run(_sort_by_sparse_product, len(part), *by, start, part, out)
        elif rows.on_gpu is not None:
            scale = GRID / UNIT / UNIT
            part[:], out[:] = most_similar(rows.on_gpu, start, len(part), length, scale)
        else:
            unit = torch.from_numpy(rows.dense)
            products = unit[start : start + len(part)] @ unit.T
            threads.run(_sort_by_product, len(part), products.numpy(), start, part, out)
        advance(len(part))
    scores[:, 0] = GRID
    return sequences, (scores / GRID).astype(np.float32)


def _candidates(length: int) -> int:
    """How many rows an index has to find. A few more than needed, as it rounds them."""
    return length + length // 2 + 8


def recall(rows: UnitRows, length: int) -> float:
    """Returns the share of the most similar nodes that the index finds, for a sample of nodes."""
    index = rows.index
    assert index is not None
    sample = np.random.Generator(np.random.PCG64(0)).permutation(rows.num_nodes)[:MEASURED]
    kept = []
    for exact in (True, False):
        found = np.full((len(sample), length), -1, dtype=np.int32)
        scores = np.zeros(found.shape)
        candidates = index.nearest(sample, _candidates(length), exact)
        threads.run(_sort_candidates, len(sample), rows.dense, candidates, sample, found, scores)
        kept.append(scores[:, 1:])
    # Equal similarities count, whichever node has them.
    least = np.where(kept[0] > 0, kept[0], np.inf).min(axis=1, keepdims=True, initial=np.inf)
    wanted = (kept[0] > 0).sum()
    return float(((kept[1] >= least) & (kept[1] > 0)).sum() / wanted) if wanted else 1.0


def unit_rows(x: Any) -> Any:
    """Scales dense or sparse rows to norm UNIT and rounds them to integers. Zero rows stay zero."""
    if scipy.sparse.issparse(x):
        return _sparse_unit_rows(x)
    unit = x.astype(np.float64)
    # Dividing by the largest value first avoids an overflow of its square.
    unit /= _or_one(np.abs(unit).max(axis=1, initial=0))[:, None]
    unit /= _or_one(np.sqrt(np.einsum("ij,ij->i", unit, unit)))[:, None]
    unit *= UNIT
    return np.rint(unit, out=unit)


def _sparse_unit_rows(x: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    unit = x.astype(np.float64)
    unit.sum_duplicates()
    row = np.repeat(np.arange(unit.shape[0]), np.diff(unit.indptr))
    largest = np.zeros(unit.shape[0])
    np.maximum.at(largest, row, np.abs(unit.data))
    unit.data /= _or_one(largest)[row]
    norms = np.sqrt(np.bincount(row, weights=unit.data**2, minlength=unit.shape[0]))
    unit.data = np.rint(unit.data / _or_one(norms)[row] * UNIT)
    return unit


def _or_one(values: np.ndarray) -> np.ndarray:
    return np.where(values > 0, values, 1)


@njit(cache=True, nogil=True)
def on_grid(product):  # type: ignore[no-untyped-def]
    """The cosine similarity in units of 1 / GRID, rounded, from a product of unit rows."""
    return np.floor(product * (GRID / UNIT / UNIT) + 0.5)


@njit(cache=True, nogil=True)
def _sort_by_product(thread, threads, products, start, sequences, scores):  # type: ignore[no-untyped-def]
    """Sorts all nodes by their products with the base nodes, which start at ``start``."""
    for b in range(thread, len(sequences), threads):
        base = start + b
        filled = insert(sequences[b], scores[b], 0, base, np.inf)
        for node in range(products.shape[1]):
            score = on_grid(products[b, node])
            if score > 0 and node != base:
                filled = insert(sequences[b], scores[b], filled, node, score)


@njit(cache=True, nogil=True)
def _sort_candidates(  # type: ignore[no-untyped-def]
    thread, threads, unit, candidates, bases, sequences, scores
):
    """Sorts a few candidates, padded with -1, for some base nodes."""
    for b in range(thread, len(sequences), threads):
        base = bases[b]
        filled = insert(sequences[b], scores[b], 0, base, np.inf)
        for node in candidates[b]:
            if node >= 0 and node != base:
                product = np.int64(0)
                for f in range(unit.shape[1]):
                    product += np.int64(unit[base, f]) * np.int64(unit[node, f])
                score = on_grid(np.float64(product))
                if score > 0:
                    filled = insert(sequences[b], scores[b], filled, node, score)


@njit(cache=True, nogil=True)
def _sort_by_sparse_product(  # type: ignore[no-untyped-def]
    thread, threads, by_row, by_column, start, sequences, scores
):
    """Sorts all nodes by products of sparse features, for the base nodes from ``start`` on."""
    row_ptr, row_columns, row_values = by_row
    column_ptr, column_rows, column_values = by_column
    products = np.zeros(len(row_ptr) - 1)
    for b in range(thread, len(sequences), threads):
        base = start + b
        for i in range(row_ptr[base], row_ptr[base + 1]):
            column = row_columns[i]
            for j in range(column_ptr[column], column_ptr[column + 1]):
                products[column_rows[j]] += row_values[i] * column_values[j]
        filled = insert(sequences[b], scores[b], 0, base, np.inf)
        for node in range(len(products)):
            score = on_grid(products[node])
            if score > 0 and node != base:
                filled = insert(sequences[b], scores[b], filled, node, score)
            products[node] = 0


def _begin(graph: Graph, settings: SequenceConfig, folder: Path | None) -> Sort:
    rows = UnitRows(graph.x, None if folder is None else folder / "centroids.npy")
    if rows.index is not None and log.isEnabledFor(logging.INFO):
        share = recall(rows, settings.length)
        log.info("similarity: the index finds %.1f%% of the most similar nodes", 100 * share)
    return lambda bases, advance: similarity_sequences(rows, settings.length, advance, bases)


def _method(graph: Graph, settings: SequenceConfig) -> tuple[object, ...]:
    large = graph.num_nodes > EXACT_NODES and isinstance(graph.x, np.ndarray)
    return ("lists", VERSION) if large else ()


SIMILARITY = Criterion(begin=_begin, method=_method, reads=("x",), closeness=of_cosines, tuned=True)
