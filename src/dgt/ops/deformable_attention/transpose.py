"""The transposed index of node sequences: for every node, the places in sequences that hold it.

Training uses the same sequences in every step, so the index is computed once while a tensor lives
and is not modified.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

_known: Any = WeakIdKeyDictionary()
"""For each tensor, or the tensor that it is a view of, its version and the indexes by view."""


class Transposed(NamedTuple):
    """The places in sequences ``(T, Q, L)`` that hold each node. A row is ``t * N + node``."""

    order: Tensor
    """The places ``q * L + i`` of each criterion, by node and then by place. Padding comes first.
    Shape: ``(T, Q * L)``."""
    begins: Tensor
    """The index in ``order``, flattened, of the first place of each row. Shape: ``(T * N,)``."""
    ends: Tensor
    """The index after the last place of each row. Shape: ``(T * N,)``."""
    part_rows: Tensor
    """The row of each part, a segment that is not the first of its row. Shape: ``(P,)``."""
    part_begins: Tensor
    """The index in ``order`` of the first place of each part. Shape: ``(P,)``."""
    part_pointers: Tensor
    """The index of the first part of each row, and P. Shape: ``(T * N + 1,)``."""
    starts: list[int]
    """The index of the first part of each criterion, and P."""


def transpose(sequences: Tensor, N: int, segment: int) -> Transposed:
    """Returns the transposed index, computed at most once for each state of the sequences.

    Args:
        sequences: Indices of N nodes, padded with -1. Shape: ``(T, Q, L)``.
        N: Number of nodes.
        segment: Number of places in a segment.
    """
    if sequences.is_inference():
        return _transpose(sequences, N, segment)
    owner = sequences if sequences._base is None else sequences._base
    version, indexes = _known.get(owner, (None, {}))
    if version != sequences._version:
        indexes = {}
        _known[owner] = sequences._version, indexes
    key = (sequences.data_ptr(), sequences.shape, sequences.stride(), N, segment)
    if key not in indexes:
        indexes[key] = _transpose(sequences, N, segment)
    return indexes[key]


def _transpose(sequences: Tensor, N: int, segment: int) -> Transposed:
    T, Q, L = sequences.shape
    small = torch.int32 if max(T * Q * L, T * N) < 2**31 else torch.int64
    order = torch.empty(T, Q * L, dtype=small, device=sequences.device)
    pointers = torch.empty(T, N + 1, dtype=torch.int64, device=sequences.device)
    nodes = torch.arange(N + 1, dtype=torch.int32, device=sequences.device)
    for t, sequence in enumerate(sequences):
        found, places = sequence.flatten().sort(stable=True)
        order[t] = places
        pointers[t] = torch.searchsorted(found, nodes) + t * Q * L
    begins, ends = pointers[:, :-1].flatten(), pointers[:, 1:].flatten()
    more = ((ends - begins - 1) // segment).clamp(min=0)  # parts of each row
    part_pointers = torch.cat([more.new_zeros(1), more.cumsum(0)])
    rows = torch.arange(T * N, device=sequences.device).repeat_interleave(more)
    place = torch.arange(len(rows), device=sequences.device) - part_pointers[rows] + 1
    return Transposed(
        order,
        begins.to(small),
        ends.to(small),
        rows.to(small),
        (begins[rows] + place * segment).to(small),
        part_pointers.to(small),
        part_pointers[torch.arange(T + 1, device=sequences.device) * N].tolist(),
    )
