"""Operators called without PyTorch's dispatcher give the bits of those called with it."""

from typing import Any

import pytest
import torch
from torch import Tensor

from dgt.ops.define import CALLED, OPERATORS
from dgt.ops.linear import linear
from tests.ops.cases import CASES, DATA, Draw
from tests.ops.test_forms import DIFFERENTIABLE, tensors


def case(name: str) -> tuple[Any, ...]:
    inputs = CASES[name](Draw(0, torch.float32), 9, 3, 4)
    for place, x in enumerate(inputs):
        given = isinstance(x, Tensor) and x.is_floating_point() and place not in DATA.get(name, ())
        if given and name in DIFFERENTIABLE:
            x.requires_grad_()
    return inputs


@pytest.fixture
def dispatched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operators that went through the dispatcher."""
    names = []

    def counted(name: str, operator: Any) -> Any:
        def call(*inputs: Any) -> Any:
            names.append(name)
            return operator(*inputs)

        return call

    for name, called in CALLED.items():
        monkeypatch.setattr(called, "operator", counted(name, called.operator))
    return names


@pytest.mark.parametrize("name", sorted(CASES))
def test_same_bits_and_gradients_as_the_dispatcher(name: str, dispatched: list[str]) -> None:
    results = []
    for call in (CALLED[name], OPERATORS[name].operator):
        inputs = case(name)
        outs = tensors(call(*inputs))
        leaves = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
        if leaves:
            upstream = torch.linspace(-1, 1, outs[0].numel()).view_as(outs[0])
            outs += torch.autograd.grad(outs[0], leaves, upstream)
        results.append(outs)
    assert not dispatched
    for a, b in zip(*results, strict=True):
        assert torch.equal(a, b)


def test_the_dispatcher_is_used_where_it_has_work_to_do(dispatched: list[str]) -> None:
    x, weight = torch.randn(5, 3), torch.randn(3, 2)
    linear(x, weight)
    assert not dispatched
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(x, weight).dtype == torch.bfloat16
    with torch.profiler.profile() as profiler:
        linear(x, weight)
    assert "dgt::linear" in {event.key for event in profiler.key_averages()}
    assert linear(x.to("meta"), weight.to("meta")).is_meta
    linear(x, torch._neg_view(weight))
    assert dispatched == ["linear"] * 4


def test_wrong_types_are_refused_as_by_the_dispatcher() -> None:
    for call in (CALLED["linear"], OPERATORS["linear"].operator):
        with pytest.raises(RuntimeError, match="linear"):
            call(torch.ones(2, 2), "weight", None)
        with pytest.raises(ValueError, match="linear"):
            call(torch.ones(2, 2), torch.ones(3, 2), None)
