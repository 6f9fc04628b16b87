"""The sums and the memory of the Triton kernels, run by Triton's interpreter like those in
``interpreted.py``."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from triton.runtime.interpreter import interpreter_builder

from dgt.ops.deformable_attention import triton as fused
from dgt.ops.deformable_attention.reference import Kernel
from tests.ops.conftest import make_case
from tests.ops.interpreted import LIMITS, _atomics, expected, run

__all__ = ["_atomics"]


def run_in_reverse(monkeypatch, *inputs):
    """Runs the programs of every kernel in reverse order."""
    usual = interpreter_builder.set_grid_idx

    def reverse(x, y, z):
        usual(*(n - 1 - i for n, i in zip(interpreter_builder.grid_dim, (x, y, z), strict=True)))

    with monkeypatch.context() as patch:
        patch.setattr(interpreter_builder, "set_grid_idx", reverse)
        return run(*inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_deterministic_for_any_order_of_the_programs(monkeypatch, dtype):
    values, sequences, query = make_case(N=4, T=1, M=2, K=2, L=4, D=3, Q=10, full=True)
    values, query = values.to(dtype), query.to(dtype)
    upstream = torch.randn(10, 1, 2, 3, generator=torch.Generator().manual_seed(0)).to(dtype)
    inputs = values, sequences, query, Kernel(), upstream
    torch.use_deterministic_algorithms(True)
    monkeypatch.setattr(fused, "SEGMENT", 3)  # every node is summed by several programs
    results = [run(*inputs), run(*inputs), run_in_reverse(monkeypatch, *inputs)]
    for result in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], result, strict=True))
    wanted = expected(*inputs)[1]
    tolerance = LIMITS[dtype] * wanted.abs().max().item()
    torch.testing.assert_close(results[0][1].float(), wanted, rtol=0, atol=tolerance)
    if dtype == torch.float32:
        # The test can fail: the order of atomic sums matters.
        torch.use_deterministic_algorithms(False)
        assert not torch.equal(run(*inputs)[1], run_in_reverse(monkeypatch, *inputs)[1])


class Largest(TorchDispatchMode):
    """Records the number of elements of the largest tensor that an operation returns."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for x in tree_leaves(out):
            # The interpreter itself copies the memory of its arguments, as bytes.
            if isinstance(x, Tensor) and x.dtype != torch.uint8:
                self.count = max(self.count, x.numel())
        return out


@pytest.mark.parametrize("deterministic", [False, True])
def test_no_large_tensor_is_created(deterministic):
    N, T, M, K, L, D = 6, 2, 2, 2, 12, 8
    values, sequences, query = make_case(N, T, M, K, L, D, full=True)
    torch.use_deterministic_algorithms(deterministic)
    with Largest() as largest:
        run(values, sequences, query, Kernel(), torch.ones_like(values))
    inputs = max(values.numel(), sequences.numel(), query.numel())
    assert 0 < largest.count <= inputs < N * L * D
