"""Sequences by feature similarity."""

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse
import torch
from numba import njit
from torch import Tensor

from dgt.config import SequenceConfig
from dgt.sequences.candidates import Candidates, dense_candidates, sparse_candidates
from dgt.sequences.closeness import of_cosines
from dgt.sequences.criterion import Criterion, Graph, Sort
from dgt.sequences.index import EXACT_NODES
from dgt.sequences.similarity_on_device import most_similar
from dgt.sequences.top import insert, largest
from dgt.sequences.unit import GRID, UNIT, on_grid, unit_rows
from dgt.system import threads
from dgt.system.notes import NOTE

log = logging.getLogger("dgt")

CHUNK = 512
# Base nodes at a time with an index: the more, the more of them search the same lists.
LARGE_CHUNK = 8192
# Products whose largest one is compared first.
BLOCK = 128
# Up to this part of all products in single precision, nodes are compared one by one.
MOST_PART = 32
# Stands for the method of large graphs in the names of cached files. Increase it when they change.
VERSION = 4


class UnitRows:
    """Features with rows of norm 1, in the form that :func:`similarity_sequences` searches.

    Args:
        x: Finite features, dense or sparse, shape ``(N, F)``.
        cache: File for the centroids of the index of a large matrix.
    """

    def __init__(self, x: np.ndarray | scipy.sparse.csr_array, cache: Path | None = None) -> None:
        self.num_nodes = x.shape[0]
        self.is_dense = isinstance(x, np.ndarray)
        self.near: Candidates | None = None
        if self.num_nodes > EXACT_NODES:
            unit = _unit_rows_in_chunks(x) if self.is_dense else unit_rows(x)
            make = dense_candidates if self.is_dense else sparse_candidates
            self.near = make(unit, cache)
        elif self.is_dense:
            self.dense = unit_rows(x)
            self.single = torch.from_numpy((self.dense / UNIT).astype(np.float32))
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

    The result is exact, except for more than ``EXACT_NODES`` nodes. There, an index finds nearly
    all of the most similar nodes if the features form clusters or share few words;
    :meth:`~dgt.sequences.candidates.Candidates.chosen` measures how many.

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
    chunk = CHUNK if rows.near is None else LARGE_CHUNK
    for at in range(0, len(bases), chunk):
        part, out = sequences[at : at + chunk], scores[at : at + chunk]
        start = bases[at]
        if rows.near is not None:
            rows.near.sort(np.arange(start, start + len(part)), part, out)
        elif not rows.is_dense:
            by = (rows.by_row, rows.by_column)
            threads.run(_sort_by_sparse_product, len(part), *by, start, part, out)
        elif rows.on_gpu is not None:
            scale = GRID / UNIT / UNIT
            part[:], out[:] = most_similar(rows.on_gpu, start, len(part), length, scale)
        else:
            _sort_dense(rows, start, part, out)
        advance(len(part))
    scores[:, 0] = GRID
    return sequences, (scores / GRID).astype(np.float32)


def _unit_rows_in_chunks(x: np.ndarray) -> np.ndarray:
    """Returns dense unit rows in half the memory of float64, with the same products."""
    unit = np.empty(x.shape, dtype=np.int32)
    for at in range(0, len(x), LARGE_CHUNK):
        unit[at : at + LARGE_CHUNK] = unit_rows(x[at : at + LARGE_CHUNK])
    return unit


def _sort_dense(rows: UnitRows, start: int, sequences: np.ndarray, scores: np.ndarray) -> None:
    """Sorts all nodes by their products with the base nodes, which start at ``start``.

    Products in single precision leave few nodes to compare exactly. If there are many, as among
    equal rows, all products are computed in double precision.
    """
    stop, F = start + len(sequences), rows.dense.shape[1]
    products = (rows.single[start:stop] @ rows.single.T).numpy()
    # Bounds the error of a product of rows of norm 1: two roundings of the values, F of the sums.
    error = 1.1 * (F + 4) * 2.0**-24
    least = np.empty(len(sequences), dtype=np.float32)
    arguments = (products, start, sequences.shape[1], error, least)
    if sum(threads.run(_bound_scores, len(least), *arguments)) <= products.size // MOST_PART:
        by = (products, least, rows.dense)
        threads.run(_sort_by_bound, len(least), *by, start, sequences, scores)
    else:
        unit = torch.from_numpy(rows.dense)
        exact = (unit[start:stop] @ unit.T).numpy()
        threads.run(_sort_by_product, len(least), exact, start, sequences, scores)


@njit(cache=True, nogil=True)
def _bound_scores(  # type: ignore[no-untyped-def]
    thread, threads, products, start, length, error, least
):
    """Finds the least product in single precision that a node of a sequence may have.

    Returns:
        The number of products that are not below it.
    """
    N, count = products.shape[1], 0
    nodes, best = np.empty(length, np.int32), np.empty(length, np.float32)
    for b in range(thread, len(least), threads):
        row, filled = products[b], 0
        row[start + b] = -np.inf
        bound = np.float32(-np.inf)
        for block in range(0, N, BLOCK):
            end = min(block + BLOCK, N)
            if largest(row[block:end]) > bound:
                for node in range(block, end):
                    if row[node] > bound:
                        filled = insert(nodes, best, filled, node, row[node])
                        bound = best[length - 1] if filled == length else bound
        # Both this product and the one of a node that belongs before it may be off by the error,
        # and products that are rounded to the same similarity by a part of the grid.
        known = best[length - 1] if filled == length else -np.inf
        least[b] = max(known - 2 * error - 2 / GRID, 0.5 / GRID - error)
        least[b] -= abs(least[b]) * np.float32(1e-6)  # it was rounded itself
        for block in range(0, N, BLOCK):
            end = min(block + BLOCK, N)
            if largest(row[block:end]) >= least[b]:
                for node in range(block, end):
                    count += row[node] >= least[b]
    return count


@njit(cache=True, nogil=True)
def _sort_by_bound(  # type: ignore[no-untyped-def]
    thread, threads, products, least, unit, start, sequences, scores
):
    """Sorts the nodes whose products in single precision are not below a bound exactly."""
    N, F = unit.shape
    for b in range(thread, len(sequences), threads):
        base = start + b
        filled = insert(sequences[b], scores[b], 0, base, np.inf)
        for block in range(0, N, BLOCK):
            end = min(block + BLOCK, N)
            if largest(products[b, block:end]) < least[b]:
                continue
            for node in range(block, end):
                if products[b, node] >= least[b] and node != base:
                    product = 0.0
                    for f in range(F):
                        product += unit[base, f] * unit[node, f]
                    score = on_grid(product)
                    if score > 0:
                        filled = insert(sequences[b], scores[b], filled, node, score)


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
    if rows.near is not None:
        share = rows.near.chosen(settings.length).recall
        text = "similarity: the index finds %.1f%% of the %d most similar nodes, by a sample"
        log.log(NOTE, text, 100 * share, settings.length)
    return lambda bases, advance: similarity_sequences(rows, settings.length, advance, bases)


def _method(graph: Graph, settings: SequenceConfig) -> tuple[object, ...]:
    return ("lists", VERSION) if graph.num_nodes > EXACT_NODES else ()


SIMILARITY = Criterion(begin=_begin, method=_method, reads=("x",), closeness=of_cosines, tuned=True)
