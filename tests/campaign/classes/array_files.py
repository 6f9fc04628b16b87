"""Graphs as ``.npz`` and ``.pt`` files: damaged, hostile, and with arrays of every kind."""

import io
import pickle
import shlex
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from tests.campaign import mutations
from tests.campaign.case import Case, Expect
from tests.campaign.hostile import Hostile
from tests.campaign.judge import command
from tests.campaign.material import (
    FLAGS,
    NAMES,
    arrays,
    graph,
    predictions,
    require_answer,
    tensors,
)

Arrays = dict[str, Any]


def npz_cases() -> Iterator[Case]:
    content = _npz(arrays())
    for name, changed in mutations.damaged(content, "npz", 16):
        yield _case("graph.npz", name, "either", lambda p, c=changed: p.write_bytes(c))
    for name, value in _arrays_of_every_kind():
        for key in ("x", "edge_index", "y", "train_mask", "node_ids", "class_names", "num_nodes"):
            yield _npz_case(f"{key} is {name}", _expected(key, name), {key: value})
    for name, changes in _wrong_arrays():
        yield _npz_case(name, "refused", changes)
    yield from _npz_hostile()
    yield from _npz_controls()


def _case(
    file: str,
    name: str,
    expect: Expect,
    write: Callable[[Path], object],
    names: tuple[str, ...] = (),
    check: Callable[[Any], object] | None = None,
) -> Case:
    tokens = ["train", file, "--out", "run", "--quiet", *FLAGS]

    def same(_: Any) -> None:
        require_answer(predictions("run/predictions.parquet"))

    return Case(
        name,
        expect,
        command(*tokens),
        lambda: write(Path(file)),
        (file, *names),
        check or same,
        f"dgt {shlex.join(tokens)}",
    )


def _npz(found: Arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **found)
    return file.getvalue()


def _npz_case(name: str, expect: Expect, changes: Arrays, check: Any = None) -> Case:
    def write(path: Path) -> None:
        found = {k: v for k, v in (arrays() | changes).items() if v is not None}
        path.write_bytes(_npz(found))

    return _case("graph.npz", name, expect, write, check=check or (lambda _: _some()))


def _some() -> None:
    found = predictions("run/predictions.parquet")
    assert found
    assert all(0 < share <= 1 for _, share in found.values())


def _arrays_of_every_kind() -> Iterator[tuple[str, np.ndarray]]:
    yield "an integer of no axes", np.array(3)
    yield "a text of no axes", np.array("abc")
    yield "a NaN of no axes", np.array(float("nan"))
    yield "an empty array", np.array([])
    yield "a matrix without rows", np.zeros((0, 4))
    yield "a matrix without columns", np.zeros((30, 0))
    yield "complex", np.ones((30, 4), dtype=complex)
    yield "text", np.array(["a"] * 30)
    yield "bytes", np.array([b"a"] * 30)
    yield "dates", np.array(["2024-01-01"] * 30, dtype="datetime64[D]")
    yield "durations", np.ones(30, dtype="timedelta64[s]")
    yield "records", np.zeros(30, dtype=[("a", "i4"), ("b", "f8")])
    yield "raw", np.zeros(30, dtype="V7")
    yield "float16 with infinities", np.full((30, 4), np.inf, dtype=np.float16)
    yield "of five axes", np.zeros((30, 1, 1, 1, 1))
    yield "huge integers", np.full(30, 2**64 - 1, dtype=np.uint64)
    yield "long doubles", np.full((30, 4), 1e4000, dtype=np.longdouble)
    yield "minus one", np.array(-1)
    yield "1e12 of no axes", np.array(10**12)


def _expected(key: str, name: str) -> Expect:
    if (key, name) in (("y", "text"), ("x", "a matrix without columns")):
        return "either"
    # The shape of x, not num_nodes, is the number of nodes; names may be of any type.
    return "refused" if key in ("x", "edge_index", "y", "train_mask") else "either"


def _wrong_arrays() -> Iterator[tuple[str, Arrays]]:
    yield "no arrays", dict.fromkeys(arrays())
    yield "an unknown array", {"weights": np.ones(3)}
    yield "x twice", {"features": np.ones((30, 4))}
    yield "edges twice", {"edges": np.ones((5, 2), dtype=int)}
    yield "a text that is no array", {"edge_index": "abc"}
    yield "edges of three columns", {"edge_index": None, "edges": np.ones((5, 3), dtype=int)}
    yield "no edges", {"edge_index": None}
    yield "edges out of range", {"edge_index": np.array([[0, 1], [1, 30]])}
    yield "negative edges", {"edge_index": np.array([[0, 1], [1, -1]])}
    yield "fractions of edges", {"edge_index": np.array([[0, 1.5], [1, 2]])}
    yield (
        "huge num_nodes alone",
        {
            "num_nodes": np.array(10**12),
            "x": None,
            "y": None,
            "node_ids": None,
            **dict.fromkeys(("train_mask", "val_mask", "test_mask")),
        },
    )
    yield (
        "negative num_nodes alone",
        {
            "num_nodes": np.array(-5),
            "x": None,
            "y": None,
            "node_ids": None,
            **dict.fromkeys(("train_mask", "val_mask", "test_mask")),
        },
    )
    yield "y too short", {"y": np.arange(5)}
    yield "y below -1", {"y": np.full(30, -7)}
    yield "masks of another length", {"train_mask": np.ones(5, dtype=bool)}
    yield "masks of other numbers", {"train_mask": np.full(30, 3)}
    yield (
        "transposed masks of another length",
        {"train_mask": None, "train_masks": np.ones((2, 5), dtype=bool)},
    )
    yield "NaN in x", {"x": np.full((30, 4), np.nan)}
    yield "overflow in x", {"x": np.full((30, 4), 1e300)}
    csr = {
        "x": None,
        "x_indptr": np.arange(31),
        "x_indices": np.zeros(30, dtype=int),
        "x_shape": np.array([30, 4]),
    }
    yield "sparse and dense x", csr | {"x": np.ones((30, 4))}
    for key in ("x_indptr", "x_indices", "x_shape"):
        yield f"sparse x without {key}", csr | {key: None}
        for name, value in {
            "0-d": np.array(3),
            "text": np.array(["a"]),
            "empty": np.array([], dtype=int),
            "negative": np.full(31, -1),
            "fractions": np.full(31, 0.5),
            "huge": np.full(31, 10**12),
            "a matrix": np.ones((2, 2), dtype=int),
        }.items():
            yield f"sparse x with {key} {name}", csr | {key: value}
    for name, value in {
        "short": np.ones(3),
        "NaN": np.full(30, np.nan),
        "text": np.array(["a"] * 30),
        "0-d": np.array(1.0),
    }.items():
        yield f"sparse x with x_data {name}", csr | {"x_data": value}
    yield "sparse x of a huge shape", csr | {"x_shape": np.array([30, 10**12])}
    yield "sparse x of three axes", csr | {"x_shape": np.array([30, 4, 1])}


def _npz_hostile() -> Iterator[Case]:
    def pickled(key: str) -> Callable[[Path], None]:
        def write(path: Path) -> None:
            value = np.empty(1, dtype=object)
            value[0] = Hostile()
            with open(path, "wb") as file:
                np.savez(file, **arrays() | {key: value})

        return write

    for key in ("x", "y", "edge_index", "node_ids"):
        yield _case("graph.npz", f"hostile pickle in {key}", "refused", pickled(key))
    yield _case(
        "graph.npz",
        "only a hostile pickle",
        "refused",
        lambda p: p.write_bytes(pickle.dumps(Hostile())),
    )

    def member(name: str, content: bytes) -> Callable[[Path], None]:
        def write(path: Path) -> None:
            path.write_bytes(_npz(arrays()))
            with zipfile.ZipFile(path, "a") as file:
                file.writestr(name, content)

        return write

    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }"
    for name, content in {
        "a member that is no array": b"hello",
        "a member without data": (header % b"10,").ljust(127) + b"\n",
        "a member of 10**12 numbers": (header % b"10**12,").ljust(127) + b"\n",
        "a member of 1e12 numbers": (header % b"1000000000000,").ljust(127) + b"\n",
        "a member of negative shape": (header % b"-3,").ljust(127) + b"\n",
        "a member with code in its header": b"\x93NUMPY\x01\x00v\x00"
        + b"__import__('os').system('true')".ljust(117)
        + b"\n",
    }.items():
        yield _case("graph.npz", name, "refused", member("extra.npy", content))
    yield _case("graph.npz", "a member with a path", "refused", member("../../x.npy", b"hello"))
    yield _case("graph.npz", "a zip bomb", "refused", _bomb)


def _bomb(path: Path) -> None:
    """Writes an array of 500 MB that is compressed to 2 MB."""
    header = (
        b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, 'shape': (500000000,), }"
    )
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file,
        file.open("surplus.npy", "w", force_zip64=True) as member,
    ):
        member.write(header.ljust(127) + b"\n")
        for _ in range(50):
            member.write(bytes(10**7))


def _npz_controls() -> Iterator[Case]:
    own = arrays()
    same = lambda _: require_answer(predictions("run/predictions.parquet"))
    yield _npz_case("control: unchanged", "accepted", {}, same)
    yield _npz_case(
        "control: edges as rows",
        "accepted",
        {"edge_index": None, "edges": own["edge_index"].T},
        same,
    )
    yield _npz_case(
        "control: other names",
        "accepted",
        {"x": None, "y": None, "node_features": own["x"], "node_labels": own["y"]},
        same,
    )
    yield _npz_case(
        "control: masks as rows",
        "accepted",
        {k: None for k in own if k.endswith("mask")}
        | {f"{k}s": own[k][None] for k in own if k.endswith("mask")},
        same,
    )
    for dtype in (np.float64, np.longdouble, ">f4", ">f8"):
        yield _npz_case(
            f"control: x as {np.dtype(dtype)}", "accepted", {"x": own["x"].astype(dtype)}, same
        )
    for dtype in ("i1", "i2", "i4", "i8", ">i4", "u1", "u2", "u4", "u8"):
        yield _npz_case(
            f"control: edges as {dtype}",
            "accepted",
            {"edge_index": own["edge_index"].astype(dtype)},
            same,
        )
    for dtype in ("i1", "i2", "i4", ">i8", "f4", "f8"):
        yield _npz_case(f"control: y as {dtype}", "accepted", {"y": own["y"].astype(dtype)}, same)
    for dtype in ("u1", "i8", "f4"):
        yield _npz_case(
            f"control: masks as {dtype}",
            "accepted",
            {k: own[k].astype(dtype) for k in own if k.endswith("mask")},
            same,
        )
    names = np.array([*NAMES, ""])
    yield _npz_case(
        "control: y as text", "accepted", {"y": names[own["y"]], "class_names": None}, same
    )
    yield _npz_case("control: integer ids", "accepted", {"node_ids": np.arange(30)})
    yield _npz_case("control: Fortran order", "accepted", {"x": np.asfortranarray(own["x"])}, same)


def pt_cases() -> Iterator[Case]:
    content = _pt(tensors())
    for name, changed in mutations.damaged(content, "pt", 16):
        yield _case("graph.pt", name, "either", lambda p, c=changed: p.write_bytes(c))
    others: dict[str, Callable[[], Any]] = {
        "None": lambda: None,
        "a number": lambda: 3,
        "text": lambda: "abc",
        "a list": lambda: [torch.ones(2)],
        "a tensor": lambda: torch.ones(30, 4),
        "an empty dict": dict,
        "a dict of numbers": lambda: {1: 2},
        "a nested dict": lambda: {"x": {"x": {}}},
        "an empty Data": Data,
        "a tuple": lambda: (1, 2),
        "a dict with an unknown key": lambda: tensors() | {"surplus": torch.ones(3)},
        "a dict with a None": lambda: tensors() | {"x": None},
        "a Data without edges": lambda: Data(x=torch.ones(30, 4)),
        "a Data with text for x": lambda: Data(x="abc", edge_index=torch.zeros(2, 1).long()),
    }
    for name, value in others.items():
        yield _case("graph.pt", f"holds {name}", "refused", lambda p, v=value: torch.save(v(), p))
    for key in ("x", "y", "edge_index", "train_mask", "node_ids", "class_names"):
        for number, value in enumerate(mutations.REPLACEMENTS):
            expect: Expect = (
                "refused" if key in ("x", "y", "edge_index", "train_mask") else "either"
            )
            if value is None:
                expect = "either"
            write = lambda p, k=key, v=value: torch.save(tensors() | {k: v}, p)
            yield _case(
                "graph.pt",
                f"{key} is {mutations.short(value)} {number}",
                expect,
                write,
                check=lambda _: _some(),
            )
    for where in ("alone", "in a dict", "in a list of ids", "in a Data"):
        for protocol in (2, 4):
            yield _case(
                "graph.pt",
                f"hostile pickle {where}, protocol {protocol}",
                "refused",
                _hostile(where, protocol),
            )
    yield _case(
        "graph.pt",
        "a plain hostile pickle",
        "refused",
        lambda p: p.write_bytes(pickle.dumps(Hostile())),
    )
    yield _case(
        "graph.pt",
        "hostile code in a module",
        "refused",
        lambda p: torch.save(torch.nn.Linear(2, 2), p),
    )
    yield _case("graph.pt", "control: a dict", "accepted", lambda p: torch.save(tensors(), p))
    yield _case("graph.pt", "control: a Data", "accepted", lambda p: torch.save(graph(), p))
    yield _case(
        "graph.pt",
        "control: the old format",
        "accepted",
        lambda p: torch.save(tensors(), p, _use_new_zipfile_serialization=False),
    )
    yield _case(
        "graph.pt",
        "control: double features",
        "accepted",
        lambda p: torch.save(tensors() | {"x": graph().x.double()}, p),
    )
    yield _case(
        "graph.pt",
        "control: sparse features",
        "accepted",
        lambda p: torch.save(tensors() | {"x": graph().x.to_sparse()}, p),
    )
    yield _case(
        "graph.pt",
        "control: NumPy inside",
        "either",
        lambda p: torch.save(tensors() | {"x": graph().x.numpy()}, p),
    )


def _hostile(where: str, protocol: int) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        content: Any = Hostile()
        if where == "in a dict":
            content = tensors() | {"x": Hostile()}
        elif where == "in a list of ids":
            content = tensors() | {"node_ids": [Hostile()]}
        elif where == "in a Data":
            content = graph()
            content.note = Hostile()
        torch.save(content, path, pickle_protocol=protocol)

    return write


def _pt(content: Any) -> bytes:
    file = io.BytesIO()
    torch.save(content, file)
    return file.getvalue()
