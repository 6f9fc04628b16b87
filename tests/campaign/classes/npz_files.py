"""Graphs as ``.npz`` files: damaged, hostile, and with arrays of every kind."""

import io
import pickle
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.campaign import mutations
from tests.campaign.case import Case, Expect
from tests.campaign.classes.training import some, train
from tests.campaign.hostile import Hostile
from tests.campaign.material import (
    NAMES,
    arrays,
    predictions,
    require_answer,
)

FILE = "graph.npz"


Arrays = dict[str, Any]


def cases() -> Iterator[Case]:
    content = _npz(arrays())
    for name, changed in mutations.damaged(content, "npz", 16):
        yield _case(name, "either", lambda p, c=changed: p.write_bytes(c))
    for name, value in _arrays_of_every_kind():
        for key in ("x", "edge_index", "y", "train_mask", "node_ids", "class_names", "num_nodes"):
            yield _npz_case(f"{key} is {name}", _expected(key, name), {key: value})
    for name, changes in _wrong_arrays():
        yield _npz_case(name, "refused", changes)
    yield from _npz_hostile()
    yield from _npz_controls()


def _case(
    name: str,
    expect: Expect,
    write: Callable[[Path], object],
    check: Callable[[Any], object] | None = None,
) -> Case:
    return train(name, expect, lambda: write(Path(FILE)), (FILE,), check, FILE)


def _npz(found: Arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **found)
    return file.getvalue()


def _npz_case(name: str, expect: Expect, changes: Arrays, check: Any = lambda _: some()) -> Case:
    def write(path: Path) -> None:
        found = {k: v for k, v in (arrays() | changes).items() if v is not None}
        path.write_bytes(_npz(found))

    return _case(name, expect, write, check)


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
        yield _case(f"hostile pickle in {key}", "refused", pickled(key))
    yield _case(
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
        yield _case(name, "refused", member("extra.npy", content))
    yield _case("a member with a path", "refused", member("../../x.npy", b"hello"))
    yield _case("a zip bomb", "refused", _bomb)


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
    same = lambda _: require_answer(predictions("run/predictions.parquet"), "arrays")
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
