"""The fused attention compared with the readable reference, values and gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from dgt.ops import deformable_attention as fused
from dgt.ops.deformable_attention import reference
from dgt.ops.deformable_attention.reference import Kernel
from dgt.ops.deformable_attention.simd import exp
from tests.ops.conftest import make_case

KERNELS = [
    Kernel(normalize=False),
    Kernel(normalize=True),
    Kernel(gamma=0.1, epsilon=7.0, normalize=False),
    Kernel(gamma=100.0, epsilon=3.5, normalize=True),
    Kernel("bilinear", normalize=False),
    Kernel("bilinear", normalize=True),
]
kernel_cases = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def run(attend, values, sequences, query, kernel):
    """Returns the output and the gradients for an upstream gradient without repeated values."""
    inputs = [x.clone().requires_grad_() for x in (values, query)]
    out = attend(inputs[0], sequences, inputs[1], kernel)
    out.backward(torch.cos(torch.arange(out.numel(), dtype=out.dtype)).view_as(out))
    return [out.detach(), *(x.grad for x in inputs)]


def assert_same(case, kernel, **tolerance):
    got = run(fused.deformable_attention, *case, kernel)
    expected = run(reference.deformable_attention, *case, kernel)
    for a, b in zip(got, expected, strict=True):
        torch.testing.assert_close(a, b, **tolerance)


@kernel_cases
def test_float64(kernel):
    assert_same(make_case(N=40, T=3, M=4, K=4, L=20, D=16), kernel)


@kernel_cases
def test_float32(kernel):
    case = make_case(N=40, T=3, M=4, K=4, L=20, D=16, dtype=torch.float32)
    assert_same(case, kernel, rtol=1e-5, atol=2e-5)


@given(
    N=st.integers(1, 12),
    T=st.integers(1, 3),
    M=st.integers(1, 3),
    K=st.integers(1, 4),
    L=st.integers(1, 14),
    Q=st.integers(1, 9),
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from(KERNELS),
    data=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_any_shape_padding_and_border(N, T, M, K, L, Q, seed, kernel, data):
    values, sequences, query = make_case(N, T, M, K, L, D=4, Q=Q, seed=seed)
    # Keys at the ends of the sequence, at integer positions (the middle of an odd length) and thus
    # at the edge of the kernel, and keys without attention.
    special = data.draw(st.sampled_from(["none", "first", "last", "whole", "no attention"]))
    if special in ("first", "last"):
        query[:, 0] = -700 if special == "first" else 700
    elif special == "whole":
        query[:, 0] = 0
    elif special == "no attention":
        query[:, 1, ..., 0] = 700
    assert_same((values, sequences, query), kernel)


@kernel_cases
def test_gradcheck(kernel):
    values, sequences, query = make_case(N=6, T=2, M=2, K=2, L=5, D=4, seed=3)
    inputs = [values.requires_grad_(), query.requires_grad_()]

    def attend(values, query):
        return fused.deformable_attention(values, sequences, query, kernel)

    assert torch.autograd.gradcheck(attend, inputs, eps=1e-6)


@kernel_cases
def test_the_plain_backward_pass_equals_autograd(kernel):
    values, sequences, query = make_case(N=30, T=3, M=4, K=4, L=20, D=8)
    upstream = torch.randn(30, 3, 4, 8, dtype=torch.float64)
    inputs = [values.requires_grad_(), query.requires_grad_()]
    out = reference.deformable_attention(values, sequences, query, kernel)
    expected = torch.autograd.grad(out, inputs, upstream)
    with torch.no_grad():
        got = reference.deformable_attention_backward(upstream, values, sequences, query, kernel)
    torch.testing.assert_close(got, expected)


def test_same_bits_for_one_and_two_threads():
    case = make_case(N=500, T=3, M=4, K=4, L=30, D=16, dtype=torch.float32)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = run(fused.deformable_attention, *case, Kernel())
        torch.set_num_threads(2)
        two = run(fused.deformable_attention, *case, Kernel())
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_no_input_is_changed():
    case = make_case(N=20, T=2, M=2, K=3, L=10, D=4)
    copies = [x.clone() for x in case]
    run(fused.deformable_attention, *case, Kernel())
    assert all(torch.equal(a, b) for a, b in zip(case, copies, strict=True))


@pytest.mark.parametrize("form", [fused, reference])
@pytest.mark.parametrize("wrong", [5, -2, 2**31 - 1, -(2**31)])
def test_a_node_that_does_not_exist_is_an_error_not_a_crash(form, wrong):
    values, sequences, query = make_case(N=5, T=1, M=1, K=2, L=4, D=4, full=True)
    form.deformable_attention(values, sequences, query, Kernel())
    sequences[0, 2, 1] = wrong
    with pytest.raises(ValueError, match=f"got node index {wrong}, expected 0 to 4, or -1"):
        form.deformable_attention(values, sequences, query, Kernel())


def test_changes_that_pytorch_does_not_see_are_errors_too():
    values, sequences, query = make_case(N=5, T=1, M=1, K=2, L=4, D=4, full=True)
    out = fused.deformable_attention(values, sequences, query.requires_grad_(), Kernel())
    sequences.numpy()[:] = 2**30
    with pytest.raises(ValueError, match=r"attention: sequences: got node index 1073741824"):
        fused.deformable_attention(values, sequences, query, Kernel())
    with pytest.raises(ValueError, match=r"attention_backward: sequences: got node index"):
        out.sum().backward()


@pytest.mark.parametrize("form", [fused, reference])
def test_empty_sequences_read_nothing_and_padding_is_at_the_end(form):
    values, sequences, query = make_case(N=5, T=1, M=1, K=2, L=4, D=4, full=True)
    sequences[0, 2] = -1
    out = form.deformable_attention(values, sequences, query, Kernel())
    assert not out[2].any()
    sequences[0, 2, 3] = 1
    with pytest.raises(ValueError, match="got a node after -1, expected padding only at the end"):
        form.deformable_attention(values, sequences, query, Kernel())


def test_sizes_beyond_the_limit_of_the_compiler():
    case = make_case(N=3, T=1, M=1, K=2, L=3, D=1001)
    out = fused.deformable_attention(*case, Kernel())
    assert torch.equal(out, reference.deformable_attention(*case, Kernel()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e30, -1e30])
def test_extreme_queries_do_not_crash(bad, dtype):
    values, sequences, query = make_case(N=9, T=1, M=1, K=2, L=8, D=4, dtype=dtype)
    query[3, 0, 0, 0, 1] = bad
    out = run(fused.deformable_attention, values, sequences, query, Kernel())[0]
    if bad != bad:
        assert out[3].isnan().all()
        out, query = out[torch.arange(9) != 3], query.nan_to_num()
    expected = run(reference.deformable_attention, values, sequences, query, Kernel())[0]
    torch.testing.assert_close(out, expected[torch.arange(9) != 3] if bad != bad else expected)


def test_wrong_dtype_of_sequences_is_reported():
    values, sequences, query = make_case(N=5, T=1, M=1, K=2, L=4, D=4)
    for form in (fused, reference):
        with pytest.raises(ValueError, match=r"int32.*int64"):
            form.deformable_attention(values, sequences.long(), query, Kernel())


@pytest.mark.parametrize(
    ("dtype", "least", "tolerance"), [(np.float32, -86.0, 3e-7), (np.float64, -707.0, 1e-15)]
)
def test_exp(dtype, least, tolerance):
    size = (0,) * 8

    @njit
    def in_place(x):
        exp(x, size)

    for x in np.linspace(least, -least, 997 * 8).astype(dtype).reshape(-1, 8):
        y = x.copy()
        in_place(y)
        np.testing.assert_allclose(y, np.exp(x.astype(np.longdouble)), rtol=tolerance)
    extreme = np.array([0, -np.inf, np.nan, -1e30, 1e-30, -1e-30, 1, -1], dtype)
    in_place(extreme)
    assert extreme[0] == extreme[4] == extreme[5] == 1
    assert np.isnan(extreme[2])
    assert extreme[1] == extreme[3] < 1e-37
