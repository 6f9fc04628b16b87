"""Sequences of the direct neighbors."""

from pathlib import Path

import numpy as np

from dgt.config import SequenceConfig
from dgt.sequences.criterion import Criterion, Graph, Sort
from dgt.storage.segments import Advance


def begin(graph: Graph, settings: SequenceConfig, folder: Path | None) -> Sort:
    """A base node and its neighbors by descending degree, then by id: the first hop of BFS, with
    the same scores. Keys thus never leave the neighborhood, whatever its size."""
    ordered, length = graph.ordered, settings.length

    def sort(bases: range, advance: Advance) -> tuple[np.ndarray, np.ndarray]:
        at = ordered.positions[bases.start : bases.stop : bases.step]
        starts = ordered.indptr[at].astype(np.int64)
        counts = np.minimum(ordered.indptr[at + 1] - starts, length - 1)[:, None]  # (N, 1)
        place = np.arange(length - 1)
        there = place < counts  # (N, L - 1)
        near = ordered.indices[(starts[:, None] + place)[there]]
        sequences = np.full((len(bases), length), -1, dtype=np.int32)
        scores = np.zeros((len(bases), length), dtype=np.float32)
        sequences[:, 0], scores[:, 0] = ordered.nodes[at], 1
        sequences[:, 1:][there] = ordered.nodes[near]
        scores[:, 1:] = there * 0.5 / np.maximum(counts, 1)
        advance(len(bases))
        return sequences, scores

    return sort


NEIGHBORS = Criterion(begin=begin)
