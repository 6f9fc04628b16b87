"""Sequences by feature similarity."""

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
from dgt.sequences.index import EXACT_NODES, RowIndex
from dgt.sequences.similarity_on_device import most_similar
from dgt.sequences.top import insert
from dgt.system import threads

CHUNK = 512

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
        if self.is_dense:
            self.dense = unit_rows(x)
            self.index = None
            self.on_gpu: Tensor | None = None
            if self.num_nodes <= EXACT_NODES and torch.cuda.is_available():
                self.on_gpu = torch.from_numpy(self.dense).to("cuda")
            if self.num_nodes > EXACT_NODES:
                self.index = RowIndex((self.dense / UNIT).astype(np.float32), cache)
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
    index finds nearly all of the most similar nodes if the features form clusters.

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
    for at in range(0, len(bases), CHUNK):
        part, out = sequences[at : at + CHUNK], scores[at : at + CHUNK]
        start = bases[at]
        if not rows.is_dense:
            by = (rows.by_row, rows.by_column)
            threads.run(_sort_by_sparse_product, len(part), *by, start, part, out)
        elif rows.index is None and rows.on_gpu is not None:
            scale = GRID / UNIT / UNIT
            part[:], out[:] = most_similar(rows.on_gpu, start, len(part), length, scale)
        elif rows.index is None:
            unit = torch.from_numpy(rows.dense)
            products = unit[start : start + len(part)] @ unit.T
            threads.run(_sort_by_product, len(part), products.numpy(), start, part, out)
        else:
            # A few more than needed, as the index neither rounds nor breaks ties by id.
            candidates = rows.index.nearest(start, start + len(part), length + 8)
            threads.run(_sort_candidates, len(part), rows.dense, candidates, start, part, out)
        advance(len(part))
    scores[:, 0] = GRID
    return sequences, (scores / GRID).astype(np.float32)


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
    thread, threads, unit, candidates, start, sequences, scores
):
    """Sorts a few candidates, padded with -1, for the base nodes, which start at ``start``."""
    for b in range(thread, len(sequences), threads):
        base = start + b
        filled = insert(sequences[b], scores[b], 0, base, np.inf)
        for node in candidates[b]:
            if node >= 0 and node != base:
                score = on_grid((unit[base] * unit[node]).sum())
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
    return lambda bases, advance: similarity_sequences(rows, settings.length, advance, bases)


SIMILARITY = Criterion(begin=_begin, reads=("x",), closeness=of_cosines, tuned=True)
