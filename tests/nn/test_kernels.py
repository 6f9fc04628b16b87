"""The fused attention against the readable reference, values and gradients."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from dgt.nn import interpolation, kernels
from dgt.nn.interpolation import Kernel
from dgt.nn.kernels.simd import exp

from .conftest import make_case

KERNELS = [
    Kernel(),
    Kernel(normalize=True),
    Kernel(gamma=0.1, epsilon=7.0),
    Kernel(gamma=100.0, epsilon=3.5, normalize=True),
    Kernel("bilinear"),
    Kernel("bilinear", normalize=True),
]
kernel_cases = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def run(attend, values, sequences, query, kernel):
    """Output and the gradients for an upstream gradient that differs everywhere."""
    inputs = [x.clone().requires_grad_() for x in (values, query)]
    out = attend(inputs[0], sequences, inputs[1], kernel)
    out.backward(torch.cos(torch.arange(out.numel(), dtype=out.dtype)).view_as(out))
    return [out.detach(), *(x.grad for x in inputs)]


def assert_same(case, kernel, **tolerance):
    fused = run(kernels.deformable_attention, *case, kernel)
    reference = run(interpolation.deformable_attention, *case, kernel)
    for a, b in zip(fused, reference, strict=True):
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
    # Keys on the ends of the sequence, on whole positions (the middle of an odd length) and so on
    # the kernel's edge, and keys without attention.
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

    def fused(values, query):
        return kernels.deformable_attention(values, sequences, query, kernel)

    assert torch.autograd.gradcheck(fused, inputs, eps=1e-6)


@pytest.mark.parametrize("kernel", [Kernel(), Kernel("bilinear", normalize=True)], ids=str)
def test_opcheck(kernel):
    values, sequences, query = make_case(N=6, T=2, M=2, K=2, L=5, D=4)
    numbers = (kernel.interpolation == "bilinear", kernel.gamma, kernel.epsilon, kernel.normalize)
    inputs = (values.requires_grad_(), sequences, query.requires_grad_(), *numbers)
    torch.library.opcheck(torch.ops.dgt.deformable_attention.default, inputs)


def test_same_bits_for_one_and_two_threads():
    case = make_case(N=500, T=3, M=4, K=4, L=30, D=16, dtype=torch.float32)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = run(kernels.deformable_attention, *case, Kernel())
        torch.set_num_threads(2)
        two = run(kernels.deformable_attention, *case, Kernel())
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_no_input_is_changed():
    case = make_case(N=20, T=2, M=2, K=3, L=10, D=4)
    copies = [x.clone() for x in case]
    run(kernels.deformable_attention, *case, Kernel())
    assert all(torch.equal(a, b) for a, b in zip(case, copies, strict=True))


def test_a_node_that_does_not_exist_is_an_error_not_a_crash():
    values, sequences, query = make_case(N=5, T=1, M=1, K=2, L=4, D=4, full=True)
    sequences[0, 2, 1] = 5
    with pytest.raises(IndexError, match="not among the 5 values"):
        kernels.deformable_attention(values, sequences, query, Kernel())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e30, -1e30])
def test_queries_out_of_all_bounds_do_not_crash(bad, dtype):
    values, sequences, query = make_case(N=9, T=1, M=1, K=2, L=8, D=4, dtype=dtype)
    query[3, 0, 0, 0, 1] = bad
    out = run(kernels.deformable_attention, values, sequences, query, Kernel())[0]
    if bad != bad:
        assert out[3].isnan().all()
        out, query = out[torch.arange(9) != 3], query.nan_to_num()
    expected = run(interpolation.deformable_attention, values, sequences, query, Kernel())[0]
    torch.testing.assert_close(out, expected[torch.arange(9) != 3] if bad != bad else expected)


def test_wrong_type_of_sequences_is_named():
    values, sequences, query = make_case(N=5, T=1, M=1, K=2, L=4, D=4)
    with pytest.raises(TypeError, match=r"int32.*int64"):
        kernels.deformable_attention(values, sequences.long(), query, Kernel())


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
