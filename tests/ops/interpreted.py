"""The Triton kernels of deformable attention, run by Triton's interpreter on the CPU.

``test_triton_interpreter.py`` runs these tests in a process of their own, since Triton chooses
between interpreter and compiler when a kernel is defined.
"""

import json
import os
from pathlib import Path

import pytest
import torch
import triton
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dgt.ops.deformable_attention import reference, triton_kernels
from dgt.ops.deformable_attention import triton as fused
from dgt.ops.deformable_attention.reference import Kernel
from tests.ops.conftest import make_case

assert triton.knobs.runtime.interpret

CASES = int(os.environ.get("DGT_TRITON_CASES", "8"))
"""The number of random cases of each of the two main dtypes."""
LIMITS = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2**-7, torch.float16: 2**-10}
"""The largest error relative to the largest entry of the reference. Half precision is compared
with the reference in single precision, so that it may differ by the last bit of the result, which
the interpreter truncates."""
KERNELS = [
    Kernel(),
    Kernel(normalize=False),
    Kernel(gamma=0.1, epsilon=7.0),
    Kernel(gamma=100.0, epsilon=3.5),
    Kernel(gamma=100.0, epsilon=40.0),
    Kernel("bilinear"),
    Kernel("bilinear", normalize=False),
]
SPECIAL = ["none", "none", "first", "last", "whole", "no attention", "empty", "one node"]
# Interpreted kernels are too slow to shrink failing cases.
random_cases = settings(
    max_examples=CASES,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
kernel_cases = pytest.mark.parametrize("kernel", KERNELS, ids=str)


@pytest.fixture(autouse=True)
def _atomics():
    yield
    torch.use_deterministic_algorithms(False)


def numbers(kernel):
    bilinear = kernel.interpolation == "bilinear"
    return bilinear, kernel.gamma, kernel.epsilon, kernel.normalize


def run(values, sequences, query, kernel, upstream):
    """Returns the output and the gradients of values and query."""
    inputs = values, sequences, query
    out = fused.forward(*inputs, *numbers(kernel))
    return [out, *fused.backward(upstream, *inputs, *numbers(kernel))]


def expected(values, sequences, query, kernel, upstream):
    real = torch.promote_types(values.dtype, torch.float32)
    values, query, upstream = (x.to(real) for x in (values, query, upstream))
    out = reference.deformable_attention(values, sequences, query, kernel)
    inputs = upstream, values, sequences, query, kernel
    return [out, *reference.deformable_attention_backward(*inputs)]


def errors(case, kernel):
    """Returns the errors of the output and of both gradients, relative to the largest entry.

    The gradient of the query is a difference, which may cancel: with one node or one key, it is
    zero but for rounding. Its error is relative to what is subtracted, if that is larger.
    """
    values, _, query = case
    Q, _, T, M, _ = query.shape
    generator = torch.Generator().manual_seed(Q)
    upstream = torch.rand(Q, T, M, values.size(3), generator=generator, dtype=torch.float64) - 0.5
    upstream = upstream.to(values.dtype)
    results = zip(run(*case, kernel, upstream), expected(*case, kernel, upstream), strict=True)
    found = []
    for place, (a, b) in enumerate(results):
        assert (a.dtype, a.shape) == (values.dtype, b.shape)
        if place == 0:
            subtracted = (b * upstream.to(b.dtype)).abs().sum(-1)
        scale = torch.cat([b.abs().flatten(), subtracted.flatten() * (place == 2)])
        error = (a.to(b.dtype) - b).abs().max() if b.numel() else torch.zeros(())
        found.append(error.item() / (scale.max().item() or 1) if len(scale) else 0.0)
    return found


@st.composite
def cases(draw, dtypes):
    """Draws sizes, sequences with padding, and keys also at borders of sequences and windows."""
    most = {"N": 9, "T": 2, "M": 3, "K": 5, "L": 12, "D": 6}
    sizes = {letter: draw(st.integers(1, high)) for letter, high in most.items()}
    dtype = draw(st.sampled_from(dtypes))
    seed, Q = draw(st.integers(0, 10**6)), draw(st.integers(0, 3))
    values, sequences, query = make_case(**sizes, Q=Q, seed=seed, dtype=torch.float64)
    special = draw(st.sampled_from(SPECIAL))
    if special in ("first", "last"):
        query[:, 0] = -700 if special == "first" else 700
    elif special == "whole":
        query[:, 0] = 0  # the middle, which is a position if the length is odd
    elif special == "no attention":
        query[:, 1, ..., 0] = 700
    elif special in ("empty", "one node"):
        sequences[:, : 1 + Q // 2, special == "one node" :] = -1
    return (values.to(dtype), sequences, query.to(dtype)), draw(st.sampled_from(KERNELS))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_values_and_gradients(dtype):
    found = []

    @given(case=cases([dtype]), deterministic=st.booleans())
    @random_cases
    def check(case, deterministic):
        torch.use_deterministic_algorithms(deterministic)
        found.append(errors(*case))
        assert max(found[-1]) <= LIMITS[dtype]

    check()
    if folder := os.environ.get("DGT_TRITON_FIGURES"):
        out, values, query = (max(column) for column in zip(*found, strict=True))
        figures = {"cases": len(found), "out": out, "grad_values": values, "grad_query": query}
        (Path(folder) / f"{dtype}.json").write_text(json.dumps(figures))


@given(case=cases([torch.bfloat16, torch.float16]), deterministic=st.booleans())
@random_cases
def test_half_precision_is_rounded_once(case, deterministic):
    torch.use_deterministic_algorithms(deterministic)
    assert max(errors(*case)) <= LIMITS[case[0][0].dtype]


@pytest.mark.parametrize(
    "sizes",
    [
        {"M": 5, "K": 2, "D": 70},  # groups of heads
        {"M": 2, "K": 130, "D": 2},
        {"M": 1, "K": 1, "D": 1},
        {"M": 1, "K": 2, "D": 300},  # several warps for a head
    ],
    ids=str,
)
def test_groups_of_heads(sizes):
    case = make_case(N=4, T=1, L=6, Q=2, **sizes)
    assert max(errors(case, Kernel())) <= 1e-12


def test_long_sequences():
    case = make_case(N=9, T=1, M=2, K=3, L=1100, D=2, Q=1)
    case[1][:] = torch.arange(1100) % 9
    assert max(errors(case, Kernel(epsilon=30.0, gamma=50.0))) <= 1e-12


@kernel_cases
def test_gradcheck(kernel):
    class Attention(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, query):
            ctx.save_for_backward(values, query)
            return fused.forward(values, sequences, query, *numbers(kernel))

        @staticmethod
        def backward(ctx, grad):
            values, query = ctx.saved_tensors
            return fused.backward(grad, values, sequences, query, *numbers(kernel))

    values, sequences, query = make_case(N=3, T=1, M=2, K=2, L=3, D=2, Q=1, seed=3)
    inputs = values.requires_grad_(), query.requires_grad_()
    assert torch.autograd.gradcheck(Attention.apply, inputs, eps=1e-6)


def test_sizes_beyond_the_registers_are_left_to_the_plain_form():
    values, sequences, query = make_case(N=3, T=1, M=1, K=2, L=3, D=1025)
    assert fused.forward(values, sequences, query, *numbers(Kernel())) is NotImplemented
    inputs = values.new_empty(3, 1, 1, 1025), values, sequences, query
    assert fused.backward(*inputs, *numbers(Kernel())) is NotImplemented


def test_chunks_and_criteria_are_read_in_place():
    values, sequences, query = make_case(N=8, T=3, M=2, K=2, L=5, D=3)
    whole = fused.forward(values, sequences, query, *numbers(Kernel()))
    chunk = fused.forward(values, sequences[:, 2:5], query[2:5], *numbers(Kernel()))
    assert torch.equal(chunk, whole[2:5])
    one = slice(1, 2)
    part = fused.forward(values[:, one], sequences[one], query[:, :, one], *numbers(Kernel()))
    assert torch.equal(part, whole[:, one])
    assert fused._rows(sequences[one, 2:5]).data_ptr() == sequences[one, 2:5].data_ptr()
    inverted = fused.forward(values, sequences.flip(1), query.flip(0), *numbers(Kernel()))
    assert torch.equal(inverted, whole.flip(0))


@pytest.mark.parametrize("deterministic", [False, True])
def test_nodes_that_do_not_exist_are_never_read(deterministic):
    """The operator refuses them, but does not see changes that PyTorch does not track."""
    values, sequences, query = make_case(N=5, T=1, M=1, K=2, L=4, D=4, full=True)
    torch.use_deterministic_algorithms(deterministic)
    upstream = torch.ones_like(values)
    # The values are the first five rows of a larger tensor, whose other rows must not be touched.
    larger = torch.cat([values, torch.full((3, 1, 1, 4), 1e9, dtype=torch.float64)])
    sequences[0, 2, 1:3] = 6
    for result in run(larger[:5], sequences, query, Kernel(), upstream):
        assert result.abs().max() < 1e6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 1e30, -1e30])
def test_extreme_queries(bad, dtype):
    values, sequences, query = make_case(N=5, T=1, M=1, K=2, L=8, D=4, dtype=dtype)
    query[3, 0, 0, 0, 1] = bad
    out = fused.forward(values, sequences, query, *numbers(Kernel()))
    others = torch.arange(5) != 3
    want = reference.deformable_attention(values, sequences, query.nan_to_num(), Kernel())
    torch.testing.assert_close(out[others], want[others])
    if bad != bad:
        assert out[3].isnan().all()
    else:
        torch.testing.assert_close(out[3], want[3])


@pytest.mark.parametrize("kernel", [triton_kernels.forward, triton_kernels.backward])
def test_trials_of_block_sizes_do_not_change_the_result(monkeypatch, kernel):
    case = make_case(N=3, T=1, M=2, K=2, L=9, D=16, Q=2)
    trials = []

    def bench(call, quantiles):
        call()
        trials.append(1)
        return [1.0 / len(trials)] * 3  # the last one is the fastest

    monkeypatch.setattr(fused._tuned(kernel), "_do_bench", bench)
    monkeypatch.setattr(fused, "SUMS", {kernel: fused.SUMS[kernel]})
    monkeypatch.setattr(fused, "TUNED_FROM", 1)
    monkeypatch.setattr(fused, "_may_tune", lambda: True)
    assert max(errors(case, Kernel())) <= 1e-12
    assert len(trials) > 1


def test_values_in_half_precision_with_queries_in_single_precision():
    values, sequences, query = make_case(N=5, T=1, M=2, K=2, L=6, D=4, Q=2, dtype=torch.float32)
    values = values.bfloat16()
    upstream = torch.ones(2, 1, 2, 4, dtype=torch.bfloat16)
    results = run(values, sequences, query, Kernel(), upstream)
    assert [x.dtype for x in results] == [torch.bfloat16, torch.bfloat16, torch.float32]
    wanted = expected(values, sequences, query, Kernel(), upstream)
    for a, b, limit in zip(results, wanted, (2**-7, 2**-7, 1e-5), strict=True):
        assert (a.float() - b).abs().max() <= limit * b.abs().max()


def test_tuning_prefers_blocks_that_fit_the_registers():
    from dgt.ops.deformable_attention.triton_sizes import CONFIGS, prune

    given = {"HEADS": 4, "CHANNELS": 16, "KEYS": 4, "L": 64}
    left = {(c.kwargs["BLOCK"], c.num_warps) for c in prune(CONFIGS, given)}
    assert {(8, 1), (4, 1), (16, 2)} <= left
    assert left <= {(8, 1), (4, 1), (8, 2), (16, 1), (16, 2), (16, 4)}
    assert not fused._may_tune()  # under the interpreter
    short = prune(CONFIGS, {**given, "L": 5})
    assert all(config.kwargs["BLOCK"] <= 8 for config in short)
    assert prune(CONFIGS, {"HEADS": 1, "CHANNELS": 1, "KEYS": 1, "L": 1})
