"""Sequences of the nodes that link alike."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse
from numba import njit

from dgt.config import SequenceConfig
from dgt.data.direction import weighted_directed_adjacency
from dgt.data.edge_tables import edge_weights
from dgt.data.matrices import adjacency
from dgt.sequences.closeness import of_cosines
from dgt.sequences.criterion import LINKS, Criterion, Graph, Sort
from dgt.sequences.top import insert
from dgt.sequences.unit import GRID, on_grid, unit_rows
from dgt.storage.segments import Advance
from dgt.system import threads

CHUNK = 2048
# Up to this number of nodes, all pairs of nodes with a common neighbor are compared.
EXACT_NODES = 40_000
# In a larger graph, at most so many pairs per node, on average.
PAIRS_PER_NODE = 4096


class Rows(NamedTuple):
    """The rows to compare, scaled to norm 1 and rounded, by row and by column."""

    row_ptr: np.ndarray  # (N + 1,)
    row_columns: np.ndarray  # int32 (E,)
    row_values: np.ndarray  # float64 (E,)
    column_ptr: np.ndarray  # (N + 1,)
    column_rows: np.ndarray  # int32 (E',)
    column_values: np.ndarray  # float64 (E',)
    exact: bool  # whether the columns are complete


def alike_rows(matrix: scipy.sparse.csr_array, pairs: float | None = None) -> Rows:
    """Prepares a matrix for :func:`alike_sequences`.

    Args:
        matrix: A nonnegative matrix, such as an adjacency matrix. Shape: ``(N, N)``.
        pairs: Compare at most so many pairs of nodes with a common neighbor (default: all). Long
            columns then keep only some of their entries: half of them those with the largest share
            of their row, the nodes with few links, which can be the most alike; half of them drawn
            at random, the same ones in every run.
    """
    rows = unit_rows(scipy.sparse.csr_array(matrix))
    columns = rows.tocsc()
    ptr, order = columns.indptr, np.arange(columns.nnz)
    sizes = np.diff(ptr).astype(np.int64)
    most = sizes.max(initial=0) if pairs is None else _most_kept(sizes, pairs)
    exact = bool((sizes <= most).all())
    if not exact:
        order = _kept(columns, sizes, most)
        ptr = np.concatenate([[0], np.cumsum(np.minimum(sizes, most))])
    return Rows(
        row_ptr=rows.indptr.astype(np.int64),
        row_columns=rows.indices.astype(np.int32),
        row_values=rows.data,
        column_ptr=ptr.astype(np.int64),
        column_rows=columns.indices[order].astype(np.int32),
        column_values=columns.data[order],
        exact=exact,
    )


def _most_kept(sizes: np.ndarray, pairs: float) -> int:
    """Returns the largest number of entries per column for which at most ``pairs`` are compared."""
    low, high = 2, max(2, int(sizes.max(initial=0)))
    while low < high:
        middle = (low + high + 1) // 2
        enough = (sizes * np.minimum(sizes, middle)).sum() <= pairs
        low, high = (middle, high) if enough else (low, middle - 1)
    return low


def _kept(columns: scipy.sparse.csc_array, sizes: np.ndarray, most: int) -> np.ndarray:
    """Returns the places of the entries that are kept, by column."""
    every = np.arange(columns.nnz)
    place = every - np.repeat(columns.indptr[:-1], sizes)
    long = np.flatnonzero(np.repeat(sizes > most, sizes))  # entries of the columns to be cut
    column = np.repeat(np.arange(len(sizes)), sizes)[long]
    row, value, place = columns.indices[long], columns.data[long], place[long]
    # A hash of row and column, below 2 ** 53 and thus exact in float64.
    key = (column.astype(np.uint64) << np.uint64(32)) ^ row.astype(np.uint64)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    chance = (key >> np.uint64(11)).astype(np.float64)
    # A stable sort by column keeps rows in their order.
    chance[np.lexsort((-value, column))[place < most // 2]] = -1
    every[long] = long[np.lexsort((chance, column))]
    dropped = np.zeros(columns.nnz, dtype=bool)
    dropped[long[place >= most]] = True
    return every[~dropped]


def alike_sequences(
    rows: Rows, length: int, advance: Callable[[int], None], bases: range | None = None
) -> tuple[np.ndarray, np.ndarray]:
    r"""The nodes whose links are most like those of each base node, by the cosine similarity of the
    rows of a matrix :math:`\mathbf{A}`,

    .. math::
        \mathbf{a}_b^{\top} \mathbf{a}_i / (\|\mathbf{a}_b\| \|\mathbf{a}_i\|)

    by descending similarity, ties by id. The base node comes first, and nodes that share no
    neighbor with it are left out.

    If columns are incomplete, candidates are found by what is left of them, and the best of these
    are compared by their whole rows.

    Args:
        rows: The rows of the matrix.
        length: Length L of the sequences.
        advance: Called with the number of base nodes processed since the last call.
        bases: Ids of the base nodes (default: all N).

    Returns:
        The nodes, int32 ``(N, L)``, padded with -1, and their similarities, float32 ``(N, L)``.
    """
    bases = range(len(rows.row_ptr) - 1) if bases is None else bases
    sequences = np.full((len(bases), length), -1, dtype=np.int32)
    scores = np.zeros((len(bases), length))
    for at in range(0, len(bases), CHUNK):
        part, out = sequences[at : at + CHUNK], scores[at : at + CHUNK]
        threads.run(_sort, len(part), rows, bases[at], part, out)
        advance(len(part))
    scores[:, 0] = GRID
    return sequences, (scores / GRID).astype(np.float32)


@njit(cache=True, nogil=True)
def _sort(thread, threads, rows, start, sequences, scores):  # type: ignore[no-untyped-def]
    num_nodes = len(rows.row_ptr) - 1
    length = sequences.shape[1]
    products = np.zeros(num_nodes)
    met = np.empty(num_nodes, np.int32)
    own = np.zeros(0 if rows.exact else num_nodes)
    near = np.empty(4 * length + 64, np.int32)
    near_scores = np.empty(len(near))
    for b in range(thread, len(sequences), threads):
        base = start + b
        first, stop = rows.row_ptr[base], rows.row_ptr[base + 1]
        count = 0
        for e in range(first, stop):
            column, value = rows.row_columns[e], rows.row_values[e]
            for i in range(rows.column_ptr[column], rows.column_ptr[column + 1]):
                node = rows.column_rows[i]
                if products[node] == 0:
                    met[count] = node
                    count += 1
                products[node] += value * rows.column_values[i]
        filled = insert(sequences[b], scores[b], 0, base, np.inf)
        if rows.exact:
            for i in range(count):
                node = met[i]
                score = on_grid(products[node])
                if score > 0 and node != base:
                    filled = insert(sequences[b], scores[b], filled, node, score)
        else:
            found = 0
            for i in range(count):
                if met[i] != base:
                    found = insert(near, near_scores, found, met[i], products[met[i]])
            for e in range(first, stop):
                own[rows.row_columns[e]] = rows.row_values[e]
            for i in range(found):
                node = near[i]
                product = 0.0
                for e in range(rows.row_ptr[node], rows.row_ptr[node + 1]):
                    product += own[rows.row_columns[e]] * rows.row_values[e]
                score = on_grid(product)
                if score > 0:
                    filled = insert(sequences[b], scores[b], filled, node, score)
            for e in range(first, stop):
                own[rows.row_columns[e]] = 0
        for i in range(count):
            products[met[i]] = 0


def _criterion(
    matrix: Callable[[Graph], scipy.sparse.csr_array], reads: tuple[str, ...]
) -> Criterion:
    def begin(graph: Graph, settings: SequenceConfig, folder: Path | None) -> Sort:
        few = graph.num_nodes <= EXACT_NODES
        rows = alike_rows(matrix(graph), None if few else PAIRS_PER_NODE * graph.num_nodes)

        def sort(bases: range, advance: Advance) -> tuple[np.ndarray, np.ndarray]:
            return alike_sequences(rows, settings.length, advance, bases)

        return sort

    return Criterion(begin=begin, reads=reads, closeness=of_cosines)


def _undirected(graph: Graph) -> scipy.sparse.csr_array:
    weights = edge_weights(graph.data)
    if weights is None:
        return graph.adjacency
    return adjacency(graph.data.edge_index, graph.num_nodes, weights)


ALIKE = _criterion(_undirected, ("edge_index", "edge_weights"))
OUT = _criterion(lambda graph: weighted_directed_adjacency(graph.data, "out"), LINKS)
IN = _criterion(lambda graph: weighted_directed_adjacency(graph.data, "in"), LINKS)
