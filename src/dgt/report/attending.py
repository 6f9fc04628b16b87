"""What a model's attention rests on, for a sample of nodes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from dgt.config import CRITERIA
from dgt.inspection import Inspection
from dgt.nn.rows import Chunks, using

QUERIES = 500
LARGE, QUERIES_IF_LARGE = 100_000, 100  # nodes
FULL_ENTRIES = 20_000_000  # of full attention, over all heads
FARTHEST = 4
HOPS = ("itself", "1 hop", "2 hops", "3 hops", "4 or more", "no path")
AGREEMENT = ("itself", "same label", "other label", "no label")
DISTANCES = 10_000_000  # entries of the matrix of distances that is held at a time
CHUNK = 50_000


@dataclass(frozen=True)
class Attending:
    """The attention of the last block, averaged over a sample of nodes."""

    queries: int
    criteria: list[str]
    """Names of the criteria, or ``["all nodes"]`` for a model without sequences."""
    mass: np.ndarray
    """The share of all attention of each criterion and head. Shape: ``(T, M)``."""
    hops: np.ndarray
    """The share of attention by distance, see ``HOPS``; rows sum to 1. Shape: ``(T, M, 6)``."""
    agreement: np.ndarray
    """The share of attention by label, see ``AGREEMENT``; rows sum to 1. Shape: ``(T, M, 4)``."""


def sample(inside: Inspection, nodes: np.ndarray) -> Tensor:
    """Draws query nodes with a fixed seed. Shape: ``(Q,)``."""
    total = inside.data.num_nodes
    most = QUERIES_IF_LARGE if total > LARGE else QUERIES
    if not _has_sequences(inside):
        most = max(1, min(most, FULL_ENTRIES // (total * inside.config.model.heads)))
    if len(nodes) > most:
        nodes = np.random.default_rng(0).choice(nodes, most, replace=False)
    return torch.from_numpy(np.sort(nodes))


def attending(inside: Inspection, A: csr_array, queries: Tensor) -> Attending:
    """Sums the attention of some nodes by criterion, head, distance and label.

    Args:
        inside: A model with attention, on a graph.
        A: The adjacency matrix of the graph.
        queries: The nodes that attend, int64, sorted. Shape: ``(Q,)``.
    """
    device = next(inside.model.parameters()).device
    attend: Any = inside.model.attention
    # Chunks bound the memory of the blocks below the last one.
    with torch.no_grad(), using(Chunks(CHUNK)):
        found = attend(**inside.steps.inputs_of(queries), nodes=queries.to(device))
    heads = list(_entries(found, queries))
    criteria = _criteria(inside)
    y = inside.y.numpy()
    hops = np.zeros((len(heads), len(heads[0]), len(HOPS)))
    agreement = np.zeros((len(heads), len(heads[0]), len(AGREEMENT)))
    for t, m, node, key, weight in _every(heads):
        own = y[node] == y[key]
        kind = np.where(node == key, 0, np.where(y[key] < 0, 3, np.where(own, 1, 2)))
        agreement[t, m] = np.bincount(kind, weight, minlength=len(AGREEMENT))
    for some in np.array_split(queries.numpy(), -(-len(queries) * len(y) // DISTANCES)):
        far = dijkstra(A, indices=some, unweighted=True)
        for t, m, node, key, weight in _every(heads):
            row = np.searchsorted(some, node)
            here = (row < len(some)) & (some[np.minimum(row, len(some) - 1)] == node)
            steps = far[row[here], key[here]]
            group = np.where(np.isfinite(steps), np.minimum(steps, FARTHEST), FARTHEST + 1)
            hops[t, m] += np.bincount(group.astype(int), weight[here], minlength=len(HOPS))
    mass = agreement.sum(axis=2)
    return Attending(
        len(queries),
        criteria,
        mass / mass.sum(),
        # A head that reads no node at all has zeros.
        hops / np.where(mass > 0, hops.sum(axis=2), 1)[:, :, None],
        agreement / np.where(mass > 0, mass, 1)[:, :, None],
    )


Head = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Nodes that attend, nodes they attend to, and weights."""


def _entries(found: Tensor | Sequence, queries: Tensor) -> Iterator[list[Head]]:
    """Returns the entries of each criterion and head."""
    if isinstance(found, Tensor):  # full attention, (M, Q, N)
        _, Q, N = found.shape
        node, key = np.repeat(queries.numpy(), N), np.tile(np.arange(N), Q)
        yield [(node, key, head.cpu().double().flatten().numpy()) for head in found]
        return
    for criterion in found:
        heads = []
        for node, key, weight in criterion:
            arrays = node.cpu().numpy(), key.cpu().numpy(), weight.cpu().double().numpy()
            # Sparse attention may return all nodes that attend.
            chosen = np.isin(arrays[0], queries.numpy())
            heads.append(tuple(array[chosen] for array in arrays))
        yield heads


def _every(
    heads: list[list[Head]],
) -> Iterator[tuple[int, int, np.ndarray, np.ndarray, np.ndarray]]:
    for t, criterion in enumerate(heads):
        for m, entries in enumerate(criterion):
            yield t, m, *entries


def _has_sequences(inside: Inspection) -> bool:
    return "sequences" in inside.config.record.inputs


def _criteria(inside: Inspection) -> list[str]:
    if _has_sequences(inside):
        return [CRITERIA.name(each) for each in inside.config.criteria]
    return ["neighbors" if inside.config.model.model == "gt-sparse" else "all nodes"]
