"""Operators report tensors on different devices and shapes that disagree."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from dgt.ops import edges, entries
from dgt.ops.deformable_attention import Kernel, deformable_attention, reference
from dgt.ops.distance_attention import distance_attention
from dgt.ops.dropout import dropout, dropout_linear
from dgt.ops.linear import linear
from dgt.ops.norm import BatchNorm, LayerNorm
from dgt.ops.sparse import SparseLinear, matmul
from tests.ops.conftest import make_case

N, F, C, H, E = 5, 4, 3, 2, 6


def ints(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
    return torch.zeros(*shape, dtype=dtype)


crow, col = ints(N + 1), ints(E)
heads = torch.zeros(N, H, C)
attention = (torch.zeros(N, 2, H, C), ints(2, N, 7, dtype=torch.int32), torch.zeros(N, 2, 2, H, 3))
full = (*[torch.zeros(H, N, C)] * 3, torch.zeros(H, 9), ints(N, N, dtype=torch.uint8))
# Each function with valid tensors and numbers.
CALLS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...], tuple[Any, ...]]] = {
    "edges.aggregate": (edges.aggregate, (crow, col, torch.zeros(E, H), heads), ()),
    "edges.products": (edges.products, (crow, col, heads, heads), ()),
    "edges.additive": (edges.additive, (crow, col, heads, heads, torch.zeros(H, C)), (0.2,)),
    "edges.directional": (
        edges.directional,
        (crow, col, torch.zeros(N, C), torch.zeros(N, H, C + 1)),
        (1e-6,),
    ),
    "edges.softmax": (edges.softmax, (crow, torch.zeros(E, H)), ()),
    "edges.gather": (edges.gather, (torch.zeros(N, C), col), ()),
    "linear": (linear, (torch.zeros(N, F), torch.zeros(F, C), torch.zeros(C)), ()),
    "dropout_linear": (
        dropout_linear,
        (torch.zeros(N, F), torch.zeros(F, C), torch.zeros(C)),
        (0.5,),
    ),
    "dropout": (lambda x, plus: dropout(x, 0.5, plus=plus), (heads, heads), ()),
    "deformable_attention": (deformable_attention, attention, (Kernel(),)),
    "distance_attention": (distance_attention, full, ()),
}


@pytest.mark.parametrize("name", CALLS)
def test_all_on_one_device(name: str) -> None:
    call, tensors, numbers = CALLS[name]
    assert call(*(x.to("meta") for x in tensors), *numbers).device.type == "meta"
    for place in range(len(tensors)):
        mixed = [x.to("meta") if i == place else x for i, x in enumerate(tensors)]
        with pytest.raises(ValueError, match=rf"^{name}: .*one device, got .* on ") as error:
            call(*mixed, *numbers)
        assert "on meta" in str(error.value)
        assert "on cpu" in str(error.value)


def test_fake_tensors_too() -> None:
    with FakeTensorMode():
        x, weight = torch.zeros(N, F, device="cuda"), torch.zeros(F, C)
        with pytest.raises(ValueError, match=r"linear: .*x on cuda:0, weight on cpu"):
            linear(x, weight)


WRONG = {
    "edges.aggregate": (crow, col, torch.zeros(E + 1, H), heads),
    "edges.products": (ints(N), col, heads, heads),
    "edges.additive": (crow, col, heads, heads, torch.zeros(H, C + 1)),
    "edges.directional": (crow, col, torch.zeros(N, C), torch.zeros(N, H, C)),
    "edges.gather": (torch.zeros(N, C), ints(2, 3)),
    "linear": (torch.zeros(N, F), torch.zeros(F + 1, C)),
    "dropout_linear": (torch.zeros(N, F), torch.zeros(F, C), torch.zeros(C - 1)),
    "dropout": (heads, heads[1:]),
    "deformable_attention": (attention[0], attention[1][:, 1:], attention[2]),
    "distance_attention": (*full[:4], full[4][:, 1:]),
}


@pytest.mark.parametrize("name", WRONG)
def test_shapes_that_disagree(name: str) -> None:
    call, _, numbers = CALLS[name]
    for device in ("cpu", "meta"):
        with pytest.raises(ValueError, match=rf"^{name}: .*got"):
            call(*(x.to(device) for x in WRONG[name]), *numbers)


def test_both_forms_of_the_attention_raise_the_same_errors() -> None:
    messages = []
    for form in (deformable_attention, reference.deformable_attention):
        for wrong in (
            WRONG["deformable_attention"],
            (attention[0].to("meta"), *attention[1:]),
            (attention[0][:, :1], *attention[1:]),
        ):
            with pytest.raises(ValueError) as error:
                form(*wrong, Kernel())
            messages.append(str(error.value))
    assert messages[:3] == messages[3:]
    assert messages[0] == (
        "deformable_attention: shapes must agree as values (N, T, M, D), sequences (T, Q, L), "
        "query (Q, 2, T, M, K); got values (5, 2, 2, 3), sequences (2, 4, 7), "
        "query (5, 2, 2, 2, 3)"
    )


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support:UserWarning")
def test_modules() -> None:
    x = torch.rand(N, F)
    for wrong, module in [
        (x[:, 1:], LayerNorm(F)),
        (x.to("meta"), BatchNorm(F)),
        (x[:, 1:], SparseLinear(F, C)),
        (x.to_sparse_csr().to("meta"), SparseLinear(F, C)),
    ]:
        with pytest.raises(ValueError, match="got"):
            module(wrong)
    with pytest.raises(ValueError, match=r"matmul: .*A \(5, 4\), x \(5, 4\)"):
        matmul(x.to_sparse_csr(), x)


def test_chunks_of_checked_sequences_are_not_checked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sequences = make_case(N=6, T=2, M=1, K=1, L=4, D=1)[1]
    calls = []
    find = entries.find_wrong_sequences
    monkeypatch.setattr(entries, "find_wrong_sequences", lambda *x: calls.append(1) or find(*x))
    assert entries.wrong_sequences(sequences, 6) is None
    assert entries.wrong_sequences(sequences[:, 1:3], 6) is None
    assert entries.wrong_sequences(sequences[1:], 6) is None
    assert entries.wrong_sequences(sequences[0], 6) is None
    assert len(calls) == 1
    taken = entries.take_sequences(sequences, torch.tensor([3, 0]))
    assert torch.equal(taken, sequences[:, [3, 0]])
    assert entries.wrong_sequences(taken, 6) is None
    assert len(calls) == 1
    assert "expected 0 to 1" in str(entries.wrong_sequences(taken, 2))
    sequences[0, 3, 0] = 7
    changed = entries.take_sequences(sequences, torch.tensor([3, 0]))
    assert "got node index 7" in str(entries.wrong_sequences(changed, 6))
    # These may be wrong although the whole is right.
    full = torch.arange(4).repeat(2, 3, 1).int()
    full[:, 0, 2:] = -1
    assert entries.wrong_sequences(full, 4) is None
    assert "after -1" in entries.wrong_sequences(full.view(2, 2, 6)[:, :, 1:5], 4)
    assert "after -1" in entries.wrong_sequences(full.flatten()[2:18].view(2, 2, 4), 4)
    assert "after -1" in entries.wrong_sequences(full.flip(-1), 4)
    assert "got node index 3" in entries.wrong_sequences(full[1:], 3)
    full[0, 1, 1] = 9
    assert "got node index 9" in entries.wrong_sequences(full[:1], 4)
