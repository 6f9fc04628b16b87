"""The transposed index of sequences, compared with a search through all places."""

import gc
from itertools import chain, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgt.ops.deformable_attention import transpose as module
from dgt.ops.deformable_attention.transpose import transpose
from tests.ops.conftest import make_case


def places(index, row):
    """Returns the places of a row, in the order in which its first segment and its parts list them,
    and their number in each."""
    order = index.order.flatten().tolist()
    begin, end = int(index.begins[row]), int(index.ends[row])
    first, last = index.part_pointers[row : row + 2].tolist()
    assert index.part_rows[first:last].tolist() == [row] * (last - first)
    starts = [begin, *index.part_begins[first:last].tolist(), end]
    return [order[a:b] for a, b in pairwise(starts)]


@given(
    N=st.integers(1, 9),
    T=st.integers(1, 3),
    L=st.integers(1, 9),
    Q=st.integers(0, 12),
    segment=st.integers(1, 6),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_lists_every_place_once_and_in_order(N, T, L, Q, segment, seed):
    sequences = make_case(N, T, 1, 1, L, D=1, Q=Q, seed=seed)[1]
    index = transpose(sequences, N, segment)
    for t in range(T):
        for node in range(N):
            segments = places(index, t * N + node)
            wanted = (sequences[t].flatten() == node).nonzero().flatten().tolist()
            assert [*chain(*segments)] == wanted
            assert all(len(part) == segment for part in segments[:-1])
            assert len(segments[-1]) <= segment
            assert segments[-1] or len(segments) == 1
    assert len(index.part_rows) == index.part_pointers[-1]
    rows = index.part_rows.tolist()
    assert index.starts == [sum(row < t * N for row in rows) for t in range(T + 1)]


@pytest.fixture
def computed(monkeypatch):
    """The number of computed indexes, as the length of a list."""
    calls = []
    compute = module._transpose
    monkeypatch.setattr(module, "_transpose", lambda *x: calls.append(1) or compute(*x))
    return calls


def test_computed_once_while_the_sequences_do_not_change(computed):
    sequences = make_case(N=6, T=2, M=1, K=1, L=4, D=1)[1]
    first = transpose(sequences, 6, 4)
    assert transpose(sequences, 6, 4) is first
    # Views, which chunks create anew in every step, share the index by their place.
    for _ in range(2):
        chunk = transpose(sequences[:, 1:3], 6, 4)
        assert chunk.order.shape == (2, 8)
        transpose(sequences[1:], 6, 4)
    assert len(computed) == 3
    assert transpose(sequences, 7, 4).begins.shape == (14,)
    sequences[0, 0, 0] = 5 if sequences[0, 0, 0] != 5 else 4
    changed = transpose(sequences, 6, 4)
    assert places(changed, 5) != places(first, 5) or places(changed, 4) != places(first, 4)
    transpose(sequences[:, 1:3], 6, 4)
    assert len(computed) == 6


def test_forgotten_with_the_sequences(computed):
    sequences = make_case(N=6, T=2, M=1, K=1, L=4, D=1)[1]
    transpose(sequences, 6, 4)
    before = len(module._known)
    del sequences
    gc.collect()
    assert len(module._known) == before - 1


def test_inference_tensors_are_not_remembered(computed):
    with torch.inference_mode():
        sequences = make_case(N=6, T=2, M=1, K=1, L=4, D=1)[1].clone()
    for _ in range(2):
        transpose(sequences, 6, 4)
    assert len(computed) == 2
