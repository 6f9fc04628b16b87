"""NodeSort: the sequences of all nodes, for one criterion or several."""

from collections.abc import Callable, Sequence
from functools import cache as once
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import BaseTransform

from dgt.config import ABSOLUTE, CRITERIA, SequenceConfig, check_criterion
from dgt.errors import InputError
from dgt.graph import adjacency, features
from dgt.sequences.absolute import absolute_order
from dgt.sequences.bfs import bfs_sequences
from dgt.sequences.cache import cached, fingerprint
from dgt.sequences.own import own_sequences
from dgt.sequences.ppr import ppr_sequences
from dgt.sequences.progress import progress_bar
from dgt.sequences.ranked import rank
from dgt.sequences.similarity import similarity_sequences

Criterion = str | Callable[[Data, int], Any]


def node_sequences(
    data: Data,
    criteria: Sequence[Criterion] = CRITERIA,
    length: int = SequenceConfig.length,
    ppr_alpha: float = SequenceConfig.ppr_alpha,
    ppr_tolerance: float = SequenceConfig.ppr_tolerance,
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
        ppr_tolerance: mass for each edge at which its push stops; smaller is more exact and slower.
        progress: show a progress bar where this takes more than a moment.
        cache: keep the sequences of the named criteria on disk, and take them from there.

    Returns:
        int32 [T, N, L].
    """
    criteria = _checked(criteria)
    if length < 1:
        raise InputError(f"length: got {length}, expected at least 1")
    shape = (data.num_nodes, length)
    graph = once(lambda: rank(adjacency(data.edge_index, data.num_nodes)))
    x = once(lambda: features(data))

    def sort(criterion: str) -> np.ndarray:
        with progress_bar(f"Sorting nodes by {criterion}", data.num_nodes, progress) as advance:
            if criterion == "bfs":
                return bfs_sequences(graph(), length, advance)
            if criterion == "ppr":
                return ppr_sequences(graph(), length, ppr_alpha, ppr_tolerance, advance)
            return similarity_sequences(x(), length, advance)

    def sort_once(criterion: str) -> np.ndarray:
        settings = (criterion, *shape, *((ppr_alpha, ppr_tolerance) if criterion == "ppr" else ()))
        decisive = x() if criterion == "similarity" else data.edge_index.cpu().numpy()
        return cached(fingerprint(settings, decisive), shape, lambda: sort(criterion))

    sequences = np.full((len(criteria), *shape), -1, dtype=np.int32)
    for t, criterion in enumerate(criteria):
        if not isinstance(criterion, str):
            sequences[t] = own_sequences(criterion, data, length)
        elif criterion in ABSOLUTE:
            order = absolute_order(data, criterion, ppr_alpha)[:length]
            sequences[t, :, : len(order)] = order
        else:
            sequences[t] = sort_once(criterion) if cache else sort(criterion)
    return torch.from_numpy(sequences)


class NodeSort(BaseTransform):
    """Sets ``data.sequences``, int32 [T, N, L]: :func:`node_sequences` as a PyG transform.

    Args:
        criteria: Names or functions, as for :func:`node_sequences`.
        length: nodes kept, L.
        ppr_alpha: teleport probability of the personalized PageRank.
        ppr_tolerance: mass for each edge at which its push stops; smaller is more exact and slower.
        progress: show a progress bar where this takes more than a moment.
        cache: keep the sequences of the named criteria on disk, and take them from there.
    """

    def __init__(
        self,
        criteria: Sequence[Criterion] = CRITERIA,
        length: int = SequenceConfig.length,
        ppr_alpha: float = SequenceConfig.ppr_alpha,
        ppr_tolerance: float = SequenceConfig.ppr_tolerance,
        progress: bool = False,
        cache: bool = False,
    ) -> None:
        self.criteria = _checked(criteria)
        self.length = length
        self.ppr_alpha = ppr_alpha
        self.ppr_tolerance = ppr_tolerance
        self.progress = progress
        self.cache = cache

    def forward(self, data: Data) -> Data:
        data.sequences = node_sequences(
            data,
            self.criteria,
            self.length,
            self.ppr_alpha,
            self.ppr_tolerance,
            self.progress,
            self.cache,
        )
        return data

    def __repr__(self) -> str:
        # PyG compares it to tell whether processed files are still right: only what decides them.
        names = ", ".join(_name(criterion) for criterion in self.criteria)
        return (
            f"{type(self).__name__}([{names}], length={self.length}, "
            f"ppr_alpha={self.ppr_alpha}, ppr_tolerance={self.ppr_tolerance})"
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
