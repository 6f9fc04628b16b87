"""Every operator: the plain form equals the fused form, and the gradient equals autograd's."""

import importlib
import pkgutil
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import dgt.ops
from dgt.ops.define import OPERATORS
from tests.ops.cases import CASES, DATA, Draw

for module in pkgutil.iter_modules(dgt.ops.__path__):
    importlib.import_module(f"dgt.ops.{module.name}")

TOLERANCE = {
    torch.float32: {"rtol": 1e-4, "atol": 1e-4},
    torch.float64: {"rtol": 1e-9, "atol": 1e-11},
}
DRAWN = {"dropout", "relu_dropout_backward"}
"""The operators whose forms must agree to the last bit: they draw the same mask."""

STATISTICS = {("layer_norm", 1), ("distance_attention", 1)}
"""The outputs that stay in single precision: operator and index."""

sizes = {"N": st.integers(1, 12), "H": st.integers(1, 4), "C": st.integers(1, 9)}
sizes["seed"] = st.integers(0, 10**6)
each_operator = pytest.mark.parametrize("name", sorted(CASES))


def tensors(out: Any) -> list[Tensor]:
    return [out] if isinstance(out, Tensor) else list(out)


def test_every_operator_has_a_case() -> None:
    assert set(CASES) == set(OPERATORS)


@each_operator
def test_registered_for_the_cpu_and_for_any_device(name: str) -> None:
    for key in ("CPU", "CompositeExplicitAutograd", "Meta"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"dgt::{name}", key)


@each_operator
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@given(**sizes)
@settings(max_examples=25, deadline=None)
def test_plain_equals_fused(
    name: str, dtype: torch.dtype, N: int, H: int, C: int, seed: int
) -> None:
    inputs = CASES[name](Draw(seed, dtype), N, H, C)
    plain, fused = (tensors(form(*inputs)) for form in OPERATORS[name][1:])
    tolerance = {"rtol": 0, "atol": 0} if name in DRAWN else TOLERANCE[dtype]
    for a, b in zip(plain, fused, strict=True):
        torch.testing.assert_close(a, b, **tolerance)


# Distance attention works in place, which autograd does not support; its own test compares it with
# the plain formula.
DIFFERENTIABLE = sorted(
    name for name in CASES if not name.endswith(("back", "backward", "distance_attention"))
)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
@given(**sizes)
@settings(max_examples=25, deadline=None)
def test_gradients_equal_those_of_autograd(name: str, N: int, H: int, C: int, seed: int) -> None:
    draw = Draw(seed, torch.float64)
    inputs = CASES[name](draw, N, H, C)
    leaves = [
        x.requires_grad_()
        for place, x in enumerate(inputs)
        if isinstance(x, Tensor) and x.is_floating_point() and place not in DATA.get(name, ())
    ]
    operator, plain, _ = OPERATORS[name]
    upstream = None
    results = []
    for form in (operator, plain):
        out = tensors(form(*inputs))[0]
        upstream = draw(*out.shape) if upstream is None else upstream
        results.append(torch.autograd.grad(out, leaves, upstream))
    torch.testing.assert_close(*results, rtol=1e-9, atol=1e-11)


@each_operator
@pytest.mark.parametrize("size", [(5, 3, 4), (5, 2, 4), (5, 3, 5)])
def test_opcheck(name: str, size: tuple[int, int, int]) -> None:
    """The sizes also select the variant of a case."""
    inputs = CASES[name](Draw(0, torch.float64), *size)
    if name in DIFFERENTIABLE or name == "distance_attention":
        for place, x in enumerate(inputs):
            if isinstance(x, Tensor) and x.is_floating_point() and place not in DATA.get(name, ()):
                x.requires_grad_()
    torch.library.opcheck(OPERATORS[name].operator, inputs)


@each_operator
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("size", [(5, 2, 4), (9, 3, 5)])
def test_half_precision_is_single_precision_rounded(
    name: str, dtype: torch.dtype, size: tuple[int, int, int]
) -> None:
    """All sums are computed in single precision; only inputs and outputs are rounded. Products of
    matrices may round their sums once more."""
    inputs = CASES[name](Draw(0, dtype), *size)
    single = [x.float() if isinstance(x, Tensor) and x.dtype == dtype else x for x in inputs]
    operator, plain, _ = OPERATORS[name]
    exact = name not in ("linear", "dropout_linear", "dropout_linear_backward")
    tolerance = {"rtol": 0, "atol": 0} if exact else {"rtol": 2e-2, "atol": 2e-2}
    for form, of_single in ((operator, operator), (plain, plain)):
        outs = zip(tensors(form(*inputs)), tensors(of_single(*single)), strict=True)
        for place, (out, expected) in enumerate(outs):
            assert out.dtype == (torch.float32 if (name, place) in STATISTICS else dtype)
            torch.testing.assert_close(out, expected.to(out.dtype), **tolerance)


@each_operator
def test_meta_tensors_have_the_shapes_and_types_of_real_ones(name: str) -> None:
    inputs = CASES[name](Draw(0, torch.float32), 5, 2, 4)
    # The seed stays on the CPU.
    moved = [x.to("meta") if isinstance(x, Tensor) and x.dim() else x for x in inputs]
    operator = OPERATORS[name].operator
    for real, meta in zip(tensors(operator(*inputs)), tensors(operator(*moved)), strict=True):
        assert meta.device.type == "meta"
        assert (meta.shape, meta.dtype) == (real.shape, real.dtype)
