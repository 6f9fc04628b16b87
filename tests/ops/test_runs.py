"""The runs of positions that scored attention reads."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from dgt.ops.deformable_attention import Kernel
from dgt.ops.scored_attention import scored_attention
from dgt.ops.scored_attention.runs import find_runs


@pytest.mark.parametrize("W", [2, 8])
def test_runs_are_the_positions_that_windows_cover(W: int) -> None:
    random = np.random.default_rng(0)
    for _ in range(300):
        n, K = int(random.integers(0, 40)), int(random.integers(1, 6))
        first = random.integers(-W, n + 1, K)
        covered = {i for f in first for i in range(f, f + W) if 0 <= i < n}
        runs = np.empty((K, 2), np.int64)
        count = find_runs.py_func(first, n, (0,) * W, (0,) * K, runs)
        found = [list(range(start, stop)) for start, stop in runs[:count].tolist()]
        assert [i for run in found for i in run] == sorted(covered)
        assert all(a[-1] + 1 < b[0] for a, b in pairwise(found))


def test_the_score_of_a_position_with_weight_0_does_not_matter() -> None:
    D = 4
    values = torch.zeros(3, 1, 1, D, dtype=torch.float64)
    values[:, 0, 0, 0] = torch.tensor([1.0, 2.0, 5e3])
    sequences = torch.tensor([[[0, 1, 2]]], dtype=torch.int32)
    query = torch.zeros(1, 2, 1, 1, 1, dtype=torch.float64)  # the key is exactly at position 1
    probe = torch.zeros(1, 1, 1, D + 1, dtype=torch.float64)
    probe[..., 0] = 1
    for tensor in (values, query, probe):
        tensor.requires_grad_()
    closeness = torch.zeros(1, 1, 3, dtype=torch.float64)
    out = scored_attention(values, sequences, closeness, query, probe, Kernel("bilinear"))
    assert torch.equal(out[0], values[1])
    out.sum().backward()
    assert torch.equal(values.grad[:, 0, 0, 1], torch.tensor([0.0, 1, 0], dtype=torch.float64))
    assert all(torch.isfinite(x.grad).all() for x in (values, query, probe))
