"""Scored attention: the definition, the reference and the fused form, values and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgt.ops import deformable_attention as unscored
from dgt.ops import scored_attention as fused
from dgt.ops.deformable_attention import Kernel
from dgt.ops.scored_attention import reference
from tests.ops.conftest import make_case

# Few sizes of kernels, keys and channels: the loops are compiled for each.
KERNELS = [Kernel(), Kernel(gamma=100.0, epsilon=3.5, normalize=False), Kernel("bilinear")]
K, D = 3, 4
kernel_cases = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def make_scored_case(N, T, M, L, Q=None, seed=0, dtype=torch.float64):
    """Returns values, sequences, closeness, queries and probes."""
    values, sequences, query = make_case(N, T, M, K, L, D, Q, seed, dtype)
    generator = torch.Generator().manual_seed(seed + 1)
    closeness = torch.rand(sequences.shape, generator=generator, dtype=dtype)
    probe = torch.randn(len(query), T, M, D + 1, generator=generator, dtype=dtype)
    return values, sequences, closeness, query, 3 * probe


def run(attend, values, sequences, closeness, query, probe, kernel, skip=0):
    """Returns the output and the gradients for an upstream gradient without repeated values."""
    values, query, probe = (x.clone().requires_grad_() for x in (values, query, probe))
    out = attend(values, sequences, closeness, query, probe, kernel, skip)
    out.backward(torch.cos(torch.arange(out.numel(), dtype=out.dtype)).view_as(out))
    return [out.detach(), values.grad, query.grad, probe.grad]


def assert_same(case, kernel, skip=0, **tolerance):
    got = run(fused.scored_attention, *case, kernel, skip)
    expected = run(reference.scored_attention, *case, kernel, skip)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, **tolerance)


@kernel_cases
def test_float64(kernel):
    assert_same(make_scored_case(N=40, T=3, M=4, L=20), kernel)


@kernel_cases
def test_float32(kernel):
    case = make_scored_case(N=40, T=3, M=4, L=20, dtype=torch.float32)
    assert_same(case, kernel, rtol=1e-4, atol=1e-4)


@given(
    N=st.integers(1, 12),
    T=st.integers(1, 3),
    M=st.integers(1, 3),
    L=st.integers(1, 14),
    Q=st.integers(1, 9),
    seed=st.integers(0, 10**6),
    skip=st.integers(0, 3),
    kernel=st.sampled_from(KERNELS),
    data=st.data(),
)
@settings(max_examples=100, deadline=None)
def test_any_shape_padding_and_border(N, T, M, L, Q, seed, skip, kernel, data):
    case = make_scored_case(N, T, M, L, Q=Q, seed=seed)
    _, sequences, closeness, query, probe = case
    special = data.draw(st.sampled_from(["none", "first", "no attention", "far", "empty"]))
    if special == "first":
        query[:, 0] = -700
    elif special == "no attention":
        query[:, 1, ..., 0] = 700
    elif special == "far":  # the exponentials of such scores would overflow
        probe[..., -1] = 1000
        closeness[:, :, 0] = 5
    elif special == "empty":
        sequences[:, 0] = -1
    assert_same(case, kernel, skip)


@kernel_cases
def test_skipped_positions_are_as_if_they_were_not_there(kernel):
    values, sequences, closeness, query, probe = make_scored_case(N=40, T=3, M=4, L=20)
    got = run(fused.scored_attention, values, sequences, closeness, query, probe, kernel, 2)
    shorter = (sequences[..., 2:].contiguous(), closeness[..., 2:].contiguous())
    expected = run(fused.scored_attention, values, *shorter, query, probe, kernel)
    for a, b in zip(got, expected, strict=True):
        assert torch.equal(a, b)
    weights, others = (
        reference.position_weights(values, *some, query, probe, kernel, skip)
        for some, skip in (((sequences, closeness), 2), (shorter, 0))
    )
    assert torch.equal(weights[..., 2:], others)
    assert not weights[..., :2].any()


@kernel_cases
def test_gradcheck(kernel):
    values, sequences, closeness, query, probe = make_scored_case(6, 2, 2, 5, seed=3)
    inputs = [x.requires_grad_() for x in (values, query, probe)]

    def attend(values, query, probe):
        return fused.scored_attention(values, sequences, closeness, query, probe, kernel)

    assert torch.autograd.gradcheck(attend, inputs, eps=1e-6)


@kernel_cases
def test_the_plain_backward_pass_equals_autograd(kernel):
    case = make_scored_case(N=30, T=3, M=4, L=20)
    upstream = torch.randn(30, 3, 4, D, dtype=torch.float64)
    inputs = [case[i].requires_grad_() for i in (0, 3, 4)]
    out = reference.scored_attention(*case, kernel)
    expected = torch.autograd.grad(out, inputs, upstream)
    with torch.no_grad():
        got = reference.scored_attention_backward(upstream, *case, kernel)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.normalize], ids=str)
def test_without_a_probe_it_is_deformable_attention(kernel):
    values, sequences, closeness, query, probe = make_scored_case(20, 2, 2, 9)
    got = fused.scored_attention(values, sequences, closeness, query, 0 * probe, kernel)
    expected = unscored.deformable_attention(values, sequences, query, kernel)
    torch.testing.assert_close(got, expected)


def test_the_definition_by_hand():
    """Two nodes at the same distance from all keys: only their scores decide."""
    values = torch.eye(D, dtype=torch.float64).view(D, 1, 1, D)
    sequences = torch.tensor([[[0, 1]]], dtype=torch.int32)
    closeness = torch.tensor([[[0.5, 0.25]]], dtype=torch.float64)
    query = torch.zeros(1, 2, 1, 1, K, dtype=torch.float64)  # the keys are in the middle
    probe = torch.tensor([2.0, 3.0, 7.0, 8.0, 4.0], dtype=torch.float64).view(1, 1, 1, D + 1)
    got = fused.scored_attention(values, sequences, closeness, query, probe, Kernel())
    scores = torch.tensor([2.0 + 4 * 0.5, 3.0 + 4 * 0.25], dtype=torch.float64)
    torch.testing.assert_close(got.flatten()[:2], torch.softmax(scores, 0))


def test_a_key_can_reject_what_it_finds():
    values, sequences, closeness, query, probe = make_scored_case(9, 1, 1, 6, seed=5)
    sequences[:] = torch.arange(6, dtype=torch.int32)
    probe[:] = 0
    probe[..., -1] = 1000
    closeness[:] = 0
    closeness[:, :, 2] = 1
    weights = reference.position_weights(
        values, sequences, closeness, query, probe, Kernel(gamma=100.0, epsilon=9.0)
    )
    expected = torch.zeros_like(weights)
    expected[..., 2] = 1
    torch.testing.assert_close(weights, expected)


def test_same_bits_for_one_and_two_threads():
    case = make_scored_case(N=300, T=3, M=4, L=30, dtype=torch.float32)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = run(fused.scored_attention, *case, Kernel())
        torch.set_num_threads(2)
        two = run(fused.scored_attention, *case, Kernel())
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_wrong_closeness_is_refused():
    case = list(make_scored_case(9, 1, 1, 6))
    case[2] = case[2][:, :, :-1]
    for attend in (fused.scored_attention, reference.scored_attention):
        with pytest.raises(ValueError, match="scored_attention: shapes must agree"):
            attend(*case, Kernel())
