"""The choice between the forms of an operator on other devices."""

import subprocess
import sys

import pytest
import torch

from dgt.ops import define
from dgt.ops.define import first_of
from dgt.ops.deformable_attention import reference
from dgt.ops.deformable_attention.reference import Kernel
from tests.ops.conftest import make_case

PLACE = "dgt.ops.deformable_attention.triton:forward"


@pytest.fixture(autouse=True)
def _reload():
    define._load.cache_clear()
    define._warn_missing.cache_clear()
    yield
    define._load.cache_clear()
    define._warn_missing.cache_clear()


def test_registered_for_gpus():
    for name in ("deformable_attention", "deformable_attention_backward"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"dgt::{name}", "CUDA")


@pytest.mark.parametrize("place", [PLACE, PLACE.replace("forward", "backward")])
def test_the_form_for_gpus_exists(place):
    if sys.platform != "linux":
        pytest.skip("Triton needs Linux")
    assert callable(define._load(place))


def test_without_triton_the_plain_form_is_used_with_one_warning(monkeypatch):
    for name in [*sys.modules]:
        if name.startswith("dgt.ops.deformable_attention.triton"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "triton", None)
    case = make_case(N=4, T=1, M=1, K=2, L=3, D=2)

    def plain(*inputs):
        return reference.deformable_attention(*inputs[:3], Kernel())

    with pytest.warns(UserWarning, match="package triton is not installed.*pip install triton"):
        out = first_of(PLACE, plain)(*case, False, 4.0, 4.0, True)
    assert torch.equal(out, plain(*case))
    # Warnings are errors in tests: a second one would fail.
    first_of(PLACE, plain)(*case, False, 4.0, 4.0, True)
    first_of(PLACE.replace("forward", "backward"), plain)(*case, False, 4.0, 4.0, True)


def test_a_mistake_in_the_package_is_not_mistaken_for_a_missing_one():
    with pytest.raises(ModuleNotFoundError, match=r"dgt\.ops\.no_such_module"):
        first_of("dgt.ops.no_such_module:forward", lambda: None)()


def test_sizes_that_a_form_does_not_support_use_the_plain_form(monkeypatch):
    monkeypatch.setattr(reference, "refuse", lambda x: NotImplemented, raising=False)
    run = first_of("dgt.ops.deformable_attention.reference:refuse", lambda x: x + 1)
    assert run(1) == 2


def test_the_cpu_does_not_need_triton():
    """Triton cannot be imported in the process, and the modules that need it are not tried."""
    lines = """
import sys
sys.modules["triton"] = None
import dgt.estimator, dgt.models
from dgt.ops.deformable_attention import Kernel, deformable_attention, transpose
from tests.ops.conftest import make_case
values, sequences, query = make_case(N=6, T=2, M=2, K=2, L=5, D=4)
out = deformable_attention(values.requires_grad_(), sequences, query, Kernel())
out.sum().backward()
assert not [name for name in sys.modules if name.startswith("dgt") and "triton" in name]
"""
    command = [sys.executable, "-W", "error::UserWarning", "-c", lines]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
