"""Dropout: rate and independence, seeds, and operations fused into the same pass."""

import pytest
import torch

from dgt.ops.dropout import Dropout, dropout, dropout_rows, rows_from
from dgt.ops.dropout.reference import kept


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_rate_scale_and_independence(p):
    torch.manual_seed(0)
    x = torch.full((1000, 1000), 2.0)
    kept = dropout(x, p) != 0
    assert dropout(x, p).unique().tolist() == pytest.approx([0.0, 2 / (1 - p)])
    sigma = (p * (1 - p)) ** 0.5
    assert abs(kept.double().mean() - (1 - p)) < 5 * sigma / 1000
    # Row and column sums, and agreement of nearby values, match independent draws.
    for axis in (0, 1):
        spread = kept.double().mean(axis).std()
        assert abs(spread / (sigma / 1000**0.5) - 1) < 0.1
    expected = p * p + (1 - p) ** 2
    for shift in (1, 2, 8, 64, 8192):
        flat = kept.flatten()
        agree = (flat[shift:] == flat[:-shift]).double().mean()
        assert abs(agree - expected) < 5 * (expected * (1 - expected)) ** 0.5 / 990
    again = dropout(x, p) != 0
    assert abs((kept == again).double().mean() - expected) < 0.01


def test_dropout_follows_the_seed_and_not_the_threads():
    before, results = torch.get_num_threads(), []
    x = torch.rand(300, 500)
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            torch.manual_seed(5)
            results.append(dropout(x, 0.4))
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)
    torch.manual_seed(6)
    assert not torch.equal(results[0], dropout(x, 0.4))


def test_the_gradient_has_the_mask_of_the_output():
    x = torch.ones(100, 100, dtype=torch.float64, requires_grad=True)
    out = dropout(x, 0.3)
    out.backward(torch.full_like(x, 3.0))
    torch.testing.assert_close(x.grad, 3 * out.detach())
    assert dropout(x, 0.3, training=False) is x
    assert dropout(x, 0.0) is x
    with pytest.raises(ValueError, match=r"below 1, got 1"):
        Dropout(1)


def test_fused_relu_and_dropout_equal_separate_ones():
    x = torch.randn(200, 300, dtype=torch.float64)
    results = []
    for together in (True, False):
        torch.manual_seed(3)
        z = x.clone().requires_grad_()
        out = dropout(z, 0.4, relu=True) if together else dropout(z.relu(), 0.4)
        out.backward(torch.cos(torch.arange(x.numel())).view_as(x))
        results.append((out.detach(), z.grad))
    for a, b in zip(*results, strict=True):
        torch.testing.assert_close(a, b)
    assert torch.equal(dropout(x, 0.4, training=False, relu=True), x.relu())


@pytest.mark.parametrize("training", [True, False])
def test_dropout_and_sum_in_one_pass(training):
    x, plus = (torch.randn(200, 300, requires_grad=True) for _ in range(2))
    torch.manual_seed(3)
    out = dropout(x, 0.4, training, plus=plus)
    torch.manual_seed(3)
    expected = dropout(x, 0.4, training) + plus
    torch.testing.assert_close(out, expected)
    grads = (torch.autograd.grad(y.square().sum(), [x, plus]) for y in (out, expected))
    torch.testing.assert_close(*grads)


@pytest.mark.parametrize("first", [0, 5])
def test_dropout_rows_equals_multiplication_by_a_mask(first):
    x = torch.randn(300, 7, requires_grad=True)
    results = []
    for at_once in (True, False):
        torch.manual_seed(0)
        with rows_from(first):
            out = dropout_rows(x, 0.4) if at_once else x * dropout(torch.ones(300), 0.4)[:, None]
        results.append((out, *torch.autograd.grad(out, x, torch.randn_like(x))))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)
    assert 0 < (results[0][0] == 0).all(1).sum() < 300
    assert dropout_rows(x, 0.4, training=False) is x


def test_dropout_does_not_hide_nan():
    assert dropout(torch.full((1000,), float("nan")), 0.5, relu=True).isnan().any()


@pytest.mark.parametrize("seed", [0, 7, 2**62 - 1])
@pytest.mark.parametrize("start", [0, 8190, 2**31 * 8192 + 5])
def test_every_device_draws_the_same_mask(seed: int, start: int) -> None:
    """The plain form, which other devices use, and the fused form agree over several groups."""
    x = torch.rand(3, 8192) + 0.5
    fused = torch.ops.dgt.dropout(x, torch.tensor(seed), 0.4, False, None, start)
    assert torch.equal(kept(x.numel(), seed, 0.4, start, x.device).view_as(x), fused != 0)


def test_the_seed_is_drawn_on_the_cpu() -> None:
    """The seed is therefore the same on any device."""
    x = torch.ones(50, 4)
    torch.manual_seed(1)
    dropout(x.to("meta"), 0.5)
    after_meta = dropout(x, 0.5)
    torch.manual_seed(1)
    dropout(x, 0.5)
    assert torch.equal(after_meta, dropout(x, 0.5))
