"""The attributes of a PyG ``Data``: every dtype, layout and device, and objects of every kind."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from tests.campaign.case import Case, Expect
from tests.campaign.judge import call
from tests.campaign.material import NAMES, QUICK, graph, require_answer

ATTRIBUTES = ("x", "y", "edge_index", "train_mask", "val_mask", "test_mask")


DTYPES = sorted({v for v in vars(torch).values() if isinstance(v, torch.dtype)}, key=str)


EXACT = {  # types that hold the numbers of the attribute without loss
    "x": (torch.float32, torch.float64),
    "y": (torch.int8, torch.int16, torch.int32, torch.int64, torch.float32, torch.float64),
    "edge_index": (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    "mask": (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
}


def fit(data: Any) -> dict[str, tuple[str, float]]:
    """Trains on a graph; returns the predictions."""
    from dgt import NodeClassifier

    classifier = NodeClassifier(**QUICK).fit(data)
    return predicted(classifier)


def predicted(classifier: Any, data: Any = None) -> dict[str, tuple[str, float]]:
    """Returns class and probability of each node of the graph."""
    shares = classifier.predict_proba(data)
    found = classifier.predict(data).tolist()
    rows = zip(found, shares.max(dim=1).values.tolist(), strict=True)
    return {f"n{i}": (NAMES[c], share) for i, (c, share) in enumerate(rows)}


def unchanged(found: dict[str, tuple[str, float]]) -> None:
    """The answer must be that for the unchanged graph."""
    require_answer(found, "arrays")


def case(
    name: str,
    expect: Expect,
    change: Callable[[Data], Any],
    names: tuple[str, ...] = (),
    check: Callable[[Any], object] | None = None,
) -> Case:
    """Returns a case that trains on the changed graph."""

    def act() -> Any:
        data = graph()
        changed = change(data)
        return fit(data if changed is None else changed)

    return Case(
        name,
        expect,
        call(act),
        names=names,
        check=check or unchanged,
        repeat=f"NodeClassifier().fit(data), {name}",
    )


def cases() -> Iterator[Case]:
    for key in ATTRIBUTES:
        if key not in ("val_mask", "test_mask"):  # read by the same code as train_mask
            yield from (_typed(key, dtype) for dtype in DTYPES)
        for name, change in LAYOUTS.items():
            yield _changed(key, name, change)
        for name, value in VALUES.items():
            yield case(
                f"{key} is {name}",
                _expect_value(key, name),
                lambda data, k=key, v=value: put(data, k, v()),
                ("x|y|edge_index|mask|graph",),
                lambda _: None,
            )


def put(data: Data, key: str, value: Any) -> None:
    data[key] = value


def _family(key: str) -> str:
    return "mask" if key.endswith("mask") else key


def _typed(key: str, dtype: torch.dtype) -> Case:
    unsigned = str(dtype).startswith("torch.uint")

    def change(data: Data) -> None:
        value = data[key]
        if key == "y" and unsigned:
            # A type without -1 can still hold the labels of a graph where every node has one.
            value = value.clamp(min=0)
        data[key] = _cast(value, dtype)

    expect: Expect = "accepted" if dtype in EXACT[_family(key)] else "either"
    if key == "y" and dtype == torch.uint8:
        expect = "accepted"
    number = dtype.is_floating_point or dtype == torch.bool
    if dtype.is_complex or (key == "edge_index" and number):
        expect = "refused"
    kept = dtype in EXACT[_family(key)] or re.fullmatch(r"torch.u?int(8|16|32|64)", str(dtype))
    check = unchanged if kept and key != "x" and not (key == "y" and unsigned) else plausible
    return case(f"{key} of type {dtype}".replace("torch.", ""), expect, change, (key,), check)


def _cast(value: Tensor, dtype: torch.dtype) -> Tensor:
    """Converts a tensor, or makes one of zeros if PyTorch cannot."""
    if str(dtype).startswith("torch.q"):
        return torch._empty_affine_quantized(value.shape, scale=1.0, zero_point=0, dtype=dtype)
    try:
        return value.to(dtype)
    except (RuntimeError, TypeError, NotImplementedError):
        return torch.empty(value.shape, dtype=dtype)


def plausible(found: Any) -> None:
    assert len(found) == 30
    assert all(0 < share <= 1 for _, share in found.values())


LAYOUTS: dict[str, Callable[[Tensor], Any]] = {
    "sparse COO": lambda v: v.to_sparse(),
    "sparse CSR": lambda v: (v if v.dim() == 2 else v[:, None]).to_sparse_csr(),
    "sparse CSC": lambda v: (v if v.dim() == 2 else v[:, None]).to_sparse_csc(),
    "sparse BSR": lambda v: (v if v.dim() == 2 else v[:, None]).float().to_sparse_bsr((1, 1)),
    "nested": lambda v: torch.nested.nested_tensor(list(v.float())),
    "jagged": lambda v: torch.nested.nested_tensor(
        [r.reshape(-1) for r in v.float()], layout=torch.jagged
    ),
    "meta": lambda v: v.to("meta"),
    "a parameter": lambda v: torch.nn.Parameter(v.float()) if v.is_floating_point() else v,
    "requires grad": lambda v: v.float().requires_grad_() if v.is_floating_point() else v,
    "not contiguous": lambda v: torch.stack([v, v], dim=-1)[..., 0],
    "expanded": lambda v: v[:1].expand_as(v),
    "Fortran order": lambda v: v.t().contiguous().t() if v.dim() == 2 else v,
    "a NumPy array": lambda v: v.numpy(),
    "a list": lambda v: v.tolist(),
    "a tuple": lambda v: tuple(v.tolist()),
    "a NumPy array, big endian": lambda v: v.numpy().astype(v.numpy().dtype.newbyteorder(">")),
    "a masked array": lambda v: np.ma.masked_array(v.numpy(), mask=v.numpy() == v.numpy().flat[0]),
    "a matrix of objects": lambda v: v.numpy().astype(object),
    "text": lambda v: v.numpy().astype(str),
    "flat": lambda v: v.reshape(-1)[:-1],
    "transposed": lambda v: v.t() if v.dim() == 2 else v[None],
    "of one axis more": lambda v: v[None],
    "of two axes more": lambda v: v[None, ..., None],
    "without the last row": lambda v: v[:-1],
    "with a row more": lambda v: torch.cat([v, v[:1]]),
    "without rows": lambda v: v[:0],
    "without columns": lambda v: v[:, :0] if v.dim() == 2 else v[:, None][:, :0],
    "a scalar": lambda v: v.reshape(-1)[0],
    "conjugated": lambda v: torch.complex(v.float(), v.float()).conj(),
    "negated view": lambda v: torch._neg_view(-v.float()) if v.is_floating_point() else v,
}


FINE = (
    "a parameter",
    "requires grad",
    "not contiguous",
    "Fortran order",
    "a NumPy array",
    "negated view",
)


OFTEN = (
    "a list",
    "a tuple",
    "sparse COO",
    "sparse CSR",
    "sparse CSC",
    "sparse BSR",
    "of one axis more",
    "with a row more",
    "without the last row",
    "without rows",
    "without columns",
    "flat",
    "expanded",
    "a NumPy array, big endian",
    "a masked array",
    "a matrix of objects",
    "nested",
    "jagged",
    "transposed",
)


def _changed(key: str, name: str, change: Callable[[Tensor], Any]) -> Case:
    def act(data: Data) -> None:
        data[key] = change(data[key])

    expect: Expect = "accepted" if name in FINE else "either" if name in OFTEN else "refused"
    if key != "x" and name == "flat" and not key.endswith("mask") and key != "y":
        expect = "refused"
    check = (
        unchanged
        if name in (*FINE, "a list", "a tuple", "sparse COO", "a NumPy array, big endian")
        else some_rows
    )
    return case(
        f"{key} {name}", expect, act, ("x|y|edge_index|mask|class_names|node_ids|graph",), check
    )


def some_rows(found: Any) -> None:
    assert all(0 < share <= 1 for _, share in found.values())


VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "a string": lambda: "abc",
    "bytes": lambda: b"abc",
    "a dict": lambda: {"a": 1},
    "an object": object,
    "a function": lambda: len,
    "a number": lambda: 3,
    "NaN": lambda: float("nan"),
    "a set": lambda: {1, 2},
    "an empty list": list,
    "a ragged list": lambda: [[1, 2], [3]],
    "a list of None": lambda: [None] * 30,
    "a Data": Data,
    "a huge expanded tensor": lambda: torch.zeros(1).expand(10**12),
    "a huge matrix": lambda: torch.zeros(1, 1).expand(10**7, 10**7),
    "a huge sparse matrix": lambda: torch.sparse_coo_tensor(
        torch.zeros(2, 1).long(), torch.ones(1), (30, 10**12)
    ),
}


def _expect_value(key: str, name: str) -> Expect:
    if name == "None":
        return "refused" if key == "edge_index" else "either"
    return "refused"
