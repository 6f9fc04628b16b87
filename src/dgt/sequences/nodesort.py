"""NodeSort: the sequences of all nodes, for one criterion or several."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache as once
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from dgt import blocks
from dgt.config import CRITERIA, SequenceConfig, check_criterion
from dgt.errors import InputError
from dgt.files import cache_folder
from dgt.graph import adjacency, features
from dgt.progress import progress_bar
from dgt.sequences.absolute import absolute_order
from dgt.sequences.bfs import bfs_sequences
from dgt.sequences.own import own_sequences
from dgt.sequences.ppr import default_tolerance, ppr_sequences
from dgt.sequences.ranked import rank
from dgt.sequences.similarity import UnitRows, similarity_sequences
from dgt.sequences.spacing import space_by_score

Criterion = str | Callable[[Data, int], Any]

FOLDER = "sequences"  # in the cache
# Sequences of so many bytes stay in their file; training reads them from there.
MAPPED_BYTES = 2**26


def node_sequences(
    data: Data,
    criteria: Sequence[Criterion] = CRITERIA,
    length: int = SequenceConfig.length,
    ppr_alpha: float = SequenceConfig.ppr_alpha,
    ppr_tolerance: float | None = SequenceConfig.ppr_tolerance,
    spacing: str = SequenceConfig.spacing,
    progress: bool = False,
    cache: bool = False,
) -> Tensor:
    r"""For every criterion :math:`\pi` and base node :math:`v_b`, the first nodes of

    .. math::
        S_{\pi b} = \text{NodeSort}_\pi(\mathcal{G}, v_b, \{\mathbf{x}_i\}_{i=1}^N)

    as indices. The base node comes first. A node that reaches fewer than :math:`L` nodes has a
    shorter sequence, padded with -1. An absolute criterion has one order of all nodes, in which
    every base node sees the same first :math:`L`.

    Args:
        data: a graph. Its edges are taken as undirected, self-loops are left out.
        criteria: for each sequence ``"bfs"`` (by hop, then by descending degree), ``"ppr"``
            (personalized PageRank), ``"similarity"`` (cosine of the features), an absolute order
            (:func:`dgt.sequences.absolute.absolute_order`), or a function of ``data`` and
            ``length`` that returns sequences as integers [N, L] of this same form.
        length: nodes kept, L.
        ppr_alpha: teleport probability of the personalized PageRank.
        ppr_tolerance: mass for each edge at which its push stops; smaller is more exact and slower
            (default: :func:`dgt.sequences.ppr.default_tolerance`).
        spacing: with ``"score"``, a node takes a share of the L positions in proportion to its
            score, as in :func:`dgt.sequences.spacing.space_by_score`; with ``"rank"``, one.
        progress: show a progress bar where this takes more than a moment.
        cache: keep the sequences of the named criteria on disk, and take them from there.

    Returns:
        int32 [T, N, L].
    """
    criteria = _checked(criteria)
    if length < 1:
        raise InputError(f"length: got {length}, expected at least 1")
    shape = (len(criteria), data.num_nodes, length)
    named = [criterion for criterion in criteria if isinstance(criterion, str)]
    folder = cache_folder() if cache else None
    made = sequence_rows(data, named, length, ppr_alpha, ppr_tolerance, spacing, folder)
    rows = dict(zip(named, made, strict=True))
    if folder and len(named) == len(criteria):
        in_file = mapped_sequences(made, shape, folder, progress)
        if in_file is not None:
            return torch.from_numpy(in_file)
    sequences = np.empty(shape, dtype=np.int32)
    for t, criterion in enumerate(criteria):
        if not isinstance(criterion, str):
            sequences[t] = own_sequences(criterion, data, length)
        elif folder:
            parts = blocks.through(rows[criterion], folder, progress=progress)
            sequences[t] = np.concatenate([part for (part,) in parts])
        else:
            one = rows[criterion]
            with progress_bar(one.title, data.num_nodes, progress) as advance:
                (sequences[t],) = one.make(0, data.num_nodes, advance)
    return torch.from_numpy(sequences)


def sequence_rows(
    data: Data,
    criteria: Sequence[str],
    length: int,
    ppr_alpha: float,
    ppr_tolerance: float | None,
    spacing: str,
    folder: Path | None = None,
) -> list[blocks.Rows]:
    """The sequences of each criterion, yet to be made; arguments as in :func:`node_sequences`, but
    for ``folder``, where they will be kept, if anywhere."""
    graph = once(lambda: rank(adjacency(data.edge_index, data.num_nodes)))
    x = once(lambda: features(data))
    tolerance = default_tolerance(length) if ppr_tolerance is None else ppr_tolerance
    settings = {"ppr": (ppr_alpha, tolerance), "absolute-ppr": (ppr_alpha,)}
    order = once(lambda criterion: absolute_order(data, criterion, ppr_alpha)[:length])

    def name(criterion: str) -> str:
        decisive = x() if criterion.endswith("similarity") else data.edge_index.cpu().numpy()
        facts = (criterion, spacing, data.num_nodes, length, *settings.get(criterion, ()))
        return f"{FOLDER}/{blocks.fingerprint(facts, decisive)}"

    names = {c: "" if folder is None else name(c) for c in dict.fromkeys(criteria)}

    @once
    def unit() -> UnitRows:
        kept = None if folder is None else folder / names["similarity"] / "centroids.npy"
        return UnitRows(x(), kept)

    def sort(
        criterion: str, bases: range, advance: blocks.Advance
    ) -> tuple[np.ndarray, np.ndarray]:
        if criterion == "bfs":
            return bfs_sequences(graph(), length, advance, bases)
        if criterion == "ppr":
            return ppr_sequences(graph(), length, ppr_alpha, tolerance, advance, bases)
        if criterion == "similarity":
            return similarity_sequences(unit(), length, advance, bases)
        sequences = np.full((len(bases), length), -1, dtype=np.int32)
        sequences[:, : len(order(criterion))] = order(criterion)
        advance(len(bases))
        return sequences, np.ones_like(sequences, dtype=np.float32)

    def rows(criterion: str) -> blocks.Rows:
        def make(start: int, stop: int, advance: blocks.Advance) -> list[np.ndarray]:
            sequences, scores = sort(criterion, range(start, stop), advance)
            return [space_by_score(sequences, scores) if spacing == "score" else sequences]

        title = f"Sorting nodes by {criterion}"
        return blocks.Rows(names[criterion], title, data.num_nodes, make)

    return [rows(criterion) for criterion in criteria]


def mapped_sequences(
    rows: Sequence[blocks.Rows], shape: tuple[int, ...], folder: Path, progress: bool = False
) -> np.ndarray | None:
    """The sequences of several criteria in one file, int32 [T, N, L]; what is not in the blocks yet
    is made. None if they are small, or the file cannot be written."""
    if 4 * math.prod(shape) < MAPPED_BYTES:
        return None
    name = blocks.fingerprint(tuple(one.name for one in rows))

    def parts() -> Iterator[np.ndarray]:
        for one in rows:
            for (part,) in blocks.through(one, folder, progress=progress):
                yield part

    return blocks.mapped(folder / FOLDER / f"{name}.npy", shape, np.int32, parts)


class NodeSort(BaseTransform):
    """Sets ``data.sequences``, int32 [T, N, L]: :func:`node_sequences` as a PyG transform.

    Args:
        criteria: Names or functions, as for :func:`node_sequences`.
        length: nodes kept, L.
        ppr_alpha: teleport probability of the personalized PageRank.
        ppr_tolerance: mass for each edge at which its push stops; smaller is more exact and slower
            (default: :func:`dgt.sequences.ppr.default_tolerance`).
        spacing: ``"rank"`` or ``"score"``.
        progress: show a progress bar where this takes more than a moment.
        cache: keep the sequences of the named criteria on disk, and take them from there.
    """

    def __init__(
        self,
        criteria: Sequence[Criterion] = CRITERIA,
        length: int = SequenceConfig.length,
        ppr_alpha: float = SequenceConfig.ppr_alpha,
        ppr_tolerance: float | None = SequenceConfig.ppr_tolerance,
        spacing: str = SequenceConfig.spacing,
        progress: bool = False,
        cache: bool = False,
    ) -> None:
        self.criteria = _checked(criteria)
        self.length = length
        self.ppr_alpha = ppr_alpha
        self.ppr_tolerance = ppr_tolerance
        self.spacing = spacing
        self.progress = progress
        self.cache = cache

    def forward(self, data: Data) -> Data:
        data.sequences = node_sequences(
            data,
            self.criteria,
            self.length,
            self.ppr_alpha,
            self.ppr_tolerance,
            self.spacing,
            self.progress,
            self.cache,
        )
        return data

    def __repr__(self) -> str:
        # PyG compares it to tell whether processed files are still right: only what decides them.
        names = ", ".join(_name(criterion) for criterion in self.criteria)
        return (
            f"{type(self).__name__}([{names}], length={self.length}, "
            f"ppr_alpha={self.ppr_alpha}, ppr_tolerance={self.ppr_tolerance}, "
            f"spacing={self.spacing!r})"
        )


def _checked(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    if isinstance(criteria, str) or callable(criteria):
        criteria = (criteria,)
    for criterion in criteria:
        if isinstance(criterion, str):
            check_criterion(criterion)
        elif not callable(criterion):
            raise InputError(f"criteria: expected names or functions, got {criterion!r}")
    if not criteria:
        raise InputError("criteria: got none, expected at least one")
    return tuple(criteria)


def _name(criterion: Criterion) -> str:
    return criterion if isinstance(criterion, str) else getattr(criterion, "__qualname__", "own")
