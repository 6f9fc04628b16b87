"""Attention with a bias per distance, compared with the plain formula."""

import pytest
import torch
from torch import Tensor

from dgt.ops.distance_attention import cpu, reference, tiles
from dgt.ops.distance_attention import distance_attention as attend


def given(Q: int, N: int, heads: int, values: int) -> tuple[Tensor, ...]:
    tensors = [torch.randn(heads, n, 8, requires_grad=True) for n in (Q, N, N)]
    bias = torch.randn(heads, values, requires_grad=True)
    return *tensors, bias, torch.randint(values, (Q, N), dtype=torch.uint8)


def gradients(out: Tensor, tensors: tuple[Tensor, ...], along: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(out, tensors[:-1], along))


def test_values_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Uses tiles of 3 queries, the last of which is smaller."""
    monkeypatch.setattr(tiles, "TILE", 2 * 3 * 20)
    tensors = query, key, value, bias, distances = given(Q=7, N=20, heads=2, values=5)
    expected = (query @ key.mT / 8**0.5 + bias[:, distances.long()]).softmax(-1) @ value
    out = attend(*tensors)
    torch.testing.assert_close(out, expected, rtol=1e-4, atol=1e-5)
    along = torch.randn_like(out)
    fast, plain = (gradients(o, tensors, along) for o in (out, expected))
    torch.testing.assert_close(fast, plain, rtol=1e-4, atol=1e-5)


def test_large_scores_and_biases() -> None:
    query, key, value, bias, distances = given(Q=4, N=6, heads=1, values=3)
    out = attend(100 * query, 100 * key, value, 1000 * bias, distances)
    assert out.isfinite().all()
    assert all(g.isfinite().all() for g in torch.autograd.grad(out.sum(), (query, key, bias)))


def test_plain_equals_fused_in_several_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiles, "TILE", 2 * 3 * 20)
    inputs = [x.detach() for x in given(Q=7, N=20, heads=2, values=5)]
    grad = torch.randn(2, 7, 8)
    forms = []
    for form in (cpu, reference):
        out = form.attention(*inputs)
        forms.append([*out, *form.attention_backward(grad, *inputs, *out)])
    torch.testing.assert_close(*forms, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("heads", [1, 4])
def test_same_bits_for_any_number_of_threads(heads: int) -> None:
    tensors = given(Q=300, N=1100, heads=heads, values=22)
    along = torch.randn(heads, 300, 8)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            out = attend(*tensors)
            results.append([out, *gradients(out, tensors, along)])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
