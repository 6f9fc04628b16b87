"""The fused attention against the readable reference, values and gradients."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgt.nn import interpolation, kernels
from dgt.nn.interpolation import Kernel

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


def run(attend, values, sequences, offsets, attention, kernel):
    """Output and the three gradients for an upstream gradient that differs everywhere."""
    inputs = [x.clone().requires_grad_() for x in (values, offsets, attention)]
    out = attend(inputs[0], sequences, inputs[1], inputs[2], kernel)
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
    values, sequences, offsets, attention = make_case(N, T, M, K, L, D=4, Q=Q, seed=seed)
    # Keys on the ends, on whole positions and on the kernel's edge, where fused code goes wrong.
    special = data.draw(st.sampled_from(["none", "ends", "whole", "zero attention"]))
    n = interpolation.sequence_lengths(sequences).T.view(Q, T, 1, 1)
    if special == "ends":
        offsets = offsets.round()
    elif special == "whole":
        offsets = ((offsets * (n - 1)).round() / (n - 1).clamp(min=1)).clamp(0, 1)
    elif special == "zero attention":
        attention = attention.where(attention > 0.5, 0.0)
    assert_same((values, sequences, offsets, attention), kernel)


@kernel_cases
def test_gradcheck(kernel):
    values, sequences, offsets, attention = make_case(N=6, T=2, M=2, K=2, L=5, D=4, seed=3)
    # A key on a whole position stands on a kink of the bilinear kernel and of the rbf's edge.
    offsets = offsets * 0.9 + 0.05
    inputs = [x.requires_grad_() for x in (values, offsets, attention)]

    def fused(values, offsets, attention):
        return kernels.deformable_attention(values, sequences, offsets, attention, kernel)

    assert torch.autograd.gradcheck(fused, inputs, eps=1e-6)


@pytest.mark.parametrize("kernel", [Kernel(), Kernel("bilinear", normalize=True)], ids=str)
def test_opcheck(kernel):
    case = make_case(N=6, T=2, M=2, K=2, L=5, D=4)
    values, offsets, attention = (case[i].requires_grad_() for i in (0, 2, 3))
    numbers = (kernel.interpolation == "bilinear", kernel.gamma, kernel.epsilon, kernel.normalize)
    torch.library.opcheck(
        torch.ops.dgt.deformable_attention.default,
        (values, case[1], offsets, attention, *numbers),
    )


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
    values, sequences, offsets, attention = make_case(N=5, T=1, M=1, K=2, L=4, D=4, full=True)
    sequences[0, 2, 1] = 5
    with pytest.raises(IndexError, match="not among the 5 values"):
        kernels.deformable_attention(values, sequences, offsets, attention, Kernel())


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e30, -3.0])
def test_offsets_that_are_no_share_do_not_crash(bad):
    values, sequences, offsets, attention = make_case(N=9, T=1, M=1, K=2, L=8, D=4)
    offsets[3, 0, 0, 1] = bad
    out = run(kernels.deformable_attention, values, sequences, offsets, attention, Kernel())[0]
    others = torch.arange(9) != 3
    assert out[others].isfinite().all()
    if bad != bad:
        assert out[3].isnan().all()


def test_wrong_type_of_sequences_is_named():
    values, sequences, offsets, attention = make_case(N=5, T=1, M=1, K=2, L=4, D=4)
    with pytest.raises(TypeError, match=r"int32.*int64"):
        kernels.deformable_attention(values, sequences.long(), offsets, attention, Kernel())
