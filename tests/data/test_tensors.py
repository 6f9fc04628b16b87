"""Tensors, arrays and lists of every type, layout and device as parts of a graph."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

from dgt.data import files
from dgt.data.tensors import FLOATS, INTEGERS, plain
from dgt.errors import InputError, MemoryNeeded

X = [[0.0, 1.0], [2.0, 0.0], [0.0, 3.0], [4.0, 0.0]]
Y = [0, 1, 1, 0]
EDGES = [[0, 1, 2], [1, 2, 3]]
MASK = [1, 0, 1, 0]

pytestmark = pytest.mark.filterwarnings(
    "ignore:Sparse CSR:UserWarning",
    "ignore:Sparse CSC:UserWarning",
    "ignore:Sparse BS:UserWarning",
    "ignore:.*quantized tensor creation:UserWarning",
    "ignore:.*nested tensors.*:UserWarning",
    "ignore:ComplexHalf:UserWarning",
)


def graph(**changes: Any) -> Data:
    parts = {
        "x": torch.tensor(X),
        "y": torch.tensor(Y),
        "edge_index": torch.tensor(EDGES),
        "train_mask": torch.tensor(MASK).bool(),
    }
    return Data(**parts | changes)


PLAIN = files.normalize(graph())


def same(data: Data) -> None:
    out = files.normalize(data)
    for key in ("x", "y", "edge_index", "train_mask"):
        assert out[key].dtype == PLAIN[key].dtype
        assert torch.equal(out[key], PLAIN[key])


@pytest.mark.parametrize(
    "dtype", [*sorted(INTEGERS, key=str), torch.bool, *sorted(FLOATS, key=str)]
)
def test_types_that_hold_the_values(dtype: torch.dtype):
    same(graph(y=torch.tensor(Y).to(dtype), train_mask=torch.tensor(MASK).to(dtype)))
    if dtype != torch.bool:
        same(graph(x=torch.tensor(X).to(dtype)))
    if dtype in INTEGERS:
        same(graph(edge_index=torch.tensor(EDGES).to(dtype)))
    else:
        kind = str(dtype).removeprefix("torch.")
        read_as = "float32" if dtype in (torch.float16, torch.bfloat16) else kind
        with pytest.raises(InputError, match=f"edge_index: got values of type {read_as}, expected"):
            files.normalize(graph(edge_index=torch.tensor(EDGES).to(dtype)))


LAYOUTS = {
    "coo": lambda t: t.to_sparse(),
    "coo, not coalesced": lambda t: torch.sparse_coo_tensor(
        torch.cat([t.nonzero(), t.nonzero()]).t(),
        torch.cat([t[t != 0], 0 * t[t != 0]]),
        t.shape,
        check_invariants=True,
    ),
    "csr": lambda t: t.to_sparse_csr(),
    "csc": lambda t: t.to_sparse_csc(),
    "bsr": lambda t: t.to_sparse_bsr((2, 1)),
    "bsc": lambda t: t.to_sparse_bsc((2, 1)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_layouts_are_for_features_only(layout: str):
    same(graph(x=LAYOUTS[layout](torch.tensor(X))))
    with pytest.raises(InputError, match=r"y: got a sparse tensor .*, expected a dense tensor"):
        files.normalize(graph(y=LAYOUTS[layout](torch.tensor([Y]).t())))
    with pytest.raises(InputError, match="edge_index: got a sparse tensor"):
        files.normalize(graph(edge_index=LAYOUTS[layout](torch.tensor(EDGES).repeat(1, 2))))


def test_sparse_tensors_with_indices_out_of_range():
    """Making them dense would write outside of the result."""
    values, far = torch.ones(1), torch.tensor([[3], [10**6]])
    coo = torch.sparse_coo_tensor(far, values, (4, 2), check_invariants=False)
    starts = torch.tensor([0, 0, 0, 0, 1])
    csr = torch.sparse_csr_tensor(starts, far[1], values, (4, 2), check_invariants=False)
    for x in (coo, csr):
        with pytest.raises(InputError, match="graph: x: got a tensor that cannot be read"):
            files.normalize(graph(x=x))


def test_other_forms_of_the_same_values():
    x, edges = torch.tensor(X), torch.tensor(EDGES)
    same(graph(x=x.t().contiguous().t(), edge_index=edges.flip(1).flip(1)))
    same(graph(x=torch.nn.Parameter(x)))
    same(graph(x=(1j * x).conj().imag.neg()))  # its sign is a flag of the tensor
    same(graph(edge_index=EdgeIndex(edges)))
    same(graph(x=x.numpy()[::-1][::-1], y=np.array(Y), edge_index=edges.numpy()))
    same(graph(x=x.numpy().astype(">f8"), y=np.array(Y, dtype=">u2")))
    same(graph(x=x.numpy().astype(np.longdouble), train_mask=np.array(MASK, dtype=bool)))
    fixed = x.numpy().copy()
    fixed.flags.writeable = False
    same(graph(x=fixed))
    same(graph(x=X, y=Y, edge_index=EDGES, train_mask=MASK))


def nested() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.tensor(row) for row in X])


UNSUPPORTED = {
    "quantized": (lambda: torch.quantize_per_tensor(torch.tensor(X), 1, 0, torch.quint8),
                  "a quantized tensor"),
    "nested": (nested, "a nested tensor"),
    "meta": (lambda: torch.ones(4, 2, device="meta"), "a tensor without data"),
    "complex": (lambda: torch.tensor(X) + 0j, "values of type complex64"),
    "complex32": (lambda: (torch.tensor(X) + 0j).to(torch.complex32), "values of type complex32"),
    "float8": (lambda: torch.tensor(X).to(torch.float8_e4m3fn), "values of type float8_e4m3fn"),
    "bits": (lambda: torch.zeros(4, 2, dtype=torch.uint8).view(torch.bits8), "of type bits8"),
    "mkldnn": (lambda: torch.tensor(X).to_mkldnn(), "a tensor of layout torch._mkldnn"),
    "objects": (lambda: np.array([object()] * 4), "an array of type object"),
    "text": (lambda: np.array([["a", "b"]] * 4), "an array of type <U1"),
    "dates": (lambda: np.array([["2020-01-01"] * 2] * 4, "datetime64[D]"), "datetime64"),
    "complex array": (lambda: np.array(X) + 0j, "an array of type complex128"),
    "string": (lambda: "abcd", "str"),
    "ragged": (lambda: [[1], [1, 2], [3], [4]], "list"),
    "dict": (lambda: {"a": 1}, "dict"),
    "large numbers": (lambda: [[2**70], [0], [0], [0]], "list"),
}  # fmt: skip


@pytest.mark.parametrize("key", ["x", "y", "edge_index", "train_mask"])
@pytest.mark.parametrize("kind", UNSUPPORTED)
def test_unsupported_kinds_are_refused(kind: str, key: str):
    make, message = UNSUPPORTED[kind]
    with pytest.raises(InputError, match=rf"graph: {key}: got .*{message}.*, expected a"):
        files.normalize(graph(**{key: make()}))


@pytest.mark.parametrize("key", ["y", "edge_index"])
def test_numbers_that_do_not_fit_into_int64(key: str):
    value = torch.tensor(Y if key == "y" else EDGES).to(torch.uint64)
    value.view(torch.int64)[(0,) * value.dim()] = -1
    with pytest.raises(InputError, match=f"{key}: got {2**64 - 1} at index 0.*below 2"):
        files.normalize(graph(**{key: value}))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1e300, r"got 1e\+300, expected a magnitude of at most 1e\+15; rescale"),
        (3e38, r"got 3e\+38, expected a magnitude"),
        (-3e38, r"got -3e\+38, expected a magnitude"),
        (float("inf"), "got inf, expected a finite number"),
        (float("nan"), "got nan, expected a finite number"),
    ],
)
def test_features_that_overflow(value: float, message: str):
    x = torch.tensor(X, dtype=torch.float64)
    x[2, 1] = value
    with pytest.raises(InputError, match=f"x: node 2, feature 1: {message}"):
        files.normalize(graph(x=x))


@pytest.mark.parametrize(
    "count", [10**12, 2**31, -1, 2.5, "many", True, [4], np.array([1, 2]), torch.ones(2, 2)]
)
def test_numbers_of_nodes(count: object, tmp_path: Path):
    wrong = "num_nodes: got .*, expected an integer from 1 to 2147483647"
    with pytest.raises(InputError, match=wrong):
        files.normalize(Data(edge_index=torch.tensor(EDGES), num_nodes=count))
    np.savez(tmp_path / "g.npz", edge_index=EDGES, num_nodes=np.asarray(count))
    if not isinstance(count, list):
        with pytest.raises(InputError, match=wrong):
            files.read(tmp_path / "g.npz")


@pytest.mark.parametrize("count", [4, np.int32(4), torch.tensor(4), np.array([4])])
def test_numbers_of_nodes_of_other_kinds(count: object):
    assert files.normalize(Data(edge_index=torch.tensor(EDGES), num_nodes=count)).num_nodes == 4


@pytest.mark.parametrize("key", ["node_ids", "class_names", "feature_names"])
@pytest.mark.parametrize(
    "value", ["abcd", 5, {"a": 1}, [[1], [2], [3], [4]], [None] * 4, np.array(3), [{}, {}]]
)
def test_names_of_a_wrong_kind(key: str, value: object):
    with pytest.raises(InputError, match=rf"graph: {key}: (got|number 0: got)"):
        files.normalize(graph(**{key: value}))


def test_names_of_other_kinds():
    named = files.normalize(graph(node_ids=np.array(["a", "b", "ä", "d"]), class_names=(7, "x")))
    assert named.node_ids == ["a", "b", "ä", "d"]
    assert named.class_names == ["7", "x"]
    assert files.normalize(graph(node_ids=np.array([b"a", b"b", b"c", b"d"]))).node_ids == [*"abcd"]
    assert files.normalize(graph(node_ids=torch.arange(4) + 3)).node_ids == [3, 4, 5, 6]


@pytest.mark.parametrize("name", ["x", "y", "edge_index", "edges", "train_mask", "val_masks"])
@pytest.mark.parametrize(
    "value",
    [np.array(1), np.array("a"), np.array(1j), np.array([], dtype=float), np.array([[[1]]])],
)
def test_arrays_of_a_wrong_kind_in_npz(tmp_path: Path, name: str, value: np.ndarray):
    arrays: dict[str, Any] = {"edge_index": EDGES, "x": X, "y": Y} | {name: value}
    if name == "edges":
        del arrays["edge_index"]
    np.savez(tmp_path / "g.npz", **arrays)
    with pytest.raises(InputError, match=r"g\.npz: "):
        files.read(tmp_path / "g.npz")


CSR = {"x_indptr": [0, 1, 1, 2, 2], "x_indices": [0, 1], "x_shape": [4, 2]}


@pytest.mark.parametrize(
    "changes",
    [
        {"x_indptr": 3},
        {"x_indices": 0},
        {"x_shape": 4},
        {"x_shape": [4, -2]},
        {"x_shape": [4.5, 2.0]},
        {"x_shape": [4, 2, 2]},
        {"x_indices": [0.5, 1.5]},
        {"x_indices": [0, 7]},
        {"x_indptr": [0, 2, 1, 2, 2]},
        {"x_data": [1j, 2]},
        {"x_data": ["a", "b"]},
        {"x_data": [1.0]},
        {"x_data": 1.0},
    ],
)
def test_wrong_sparse_features_in_npz(tmp_path: Path, changes: dict[str, Any]):
    np.savez(tmp_path / "g.npz", edge_index=EDGES, **CSR)
    assert files.read(tmp_path / "g.npz").x.tolist() == [[1, 0], [0, 0], [0, 1], [0, 0]]
    np.savez(tmp_path / "g.npz", edge_index=EDGES, **CSR | changes)
    with pytest.raises(InputError, match=r"g\.npz: x_"):
        files.read(tmp_path / "g.npz")


def test_contents_that_do_not_fit_into_memory(tmp_path: Path, monkeypatch):
    np.savez(tmp_path / "g.npz", edge_index=EDGES, **CSR | {"x_shape": [4, 2**44]})
    with pytest.raises(MemoryNeeded, match=r"a dense matrix of shape .* needs 281\.5 TB"):
        files.read(tmp_path / "g.npz")

    repeated = torch.zeros(1, 1).expand(4, 2**50)
    with pytest.raises(MemoryNeeded, match=r"graph: x: a tensor of shape .* needs 18\.0 PB"):
        files.normalize(graph(x=repeated))
    sparse = torch.sparse_coo_tensor(
        torch.zeros(2, 1).long(), torch.ones(1), (4, 2**40), check_invariants=True
    )
    with pytest.raises(MemoryNeeded, match=r"graph: x: a tensor of shape .* needs 17\.6 TB"):
        files.normalize(graph(x=sparse))

    # Zeros are compressed to a thousandth.
    np.savez_compressed(tmp_path / "z.npz", edge_index=EDGES, x=np.zeros((4, 10**6)))
    assert (tmp_path / "z.npz").stat().st_size < 100_000
    nodes = pa.table({"id": [0, 1], **{f"f{i}": [0.0, 0.0] for i in range(50)}})
    (tmp_path / "g").mkdir()
    pq.write_table(nodes, tmp_path / "g" / "nodes.parquet")
    pq.write_table(pa.table({"source": [0], "target": [1]}), tmp_path / "g" / "edges.parquet")
    files.read(tmp_path / "g")
    monkeypatch.setattr("dgt.system.machine.available", lambda: 300)
    for name, size in (("z.npz", r"3[\d.]+ MB"), ("g", "408 bytes")):
        with pytest.raises(MemoryNeeded, match=rf"its content needs {size}"):
            files.read(tmp_path / name)


def test_an_npz_file_that_claims_a_huge_array(tmp_path: Path):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 4), }"
    header += b" " * (118 - len(header)) + b"\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    buffer = io.BytesIO()
    np.save(buffer, np.array(EDGES))
    with zipfile.ZipFile(tmp_path / "g.npz", "w") as file:
        file.writestr("x.npy", content)
        file.writestr("edge_index.npy", buffer.getvalue())
    with pytest.raises(InputError, match=r"g\.npz: not a readable \.npz file"):
        files.read(tmp_path / "g.npz")


def parquet(folder: Path, **columns: pa.Array) -> Path:
    nodes = {"id": pa.array([0, 1, 2, 3]), "label": pa.array([*"abab"]), "f": pa.array([1.0] * 4)}
    pq.write_table(pa.table(nodes | columns), folder / "nodes.parquet")
    pq.write_table(pa.table({"source": [0, 1, 2], "target": [1, 2, 3]}), folder / "edges.parquet")
    return folder


NUMBERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
           pa.uint64(), pa.float16(), pa.float32(), pa.float64()]  # fmt: skip


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_every_number_of_parquet(tmp_path: Path, kind: pa.DataType):
    values = np.arange(4) if not pa.types.is_floating(kind) else np.arange(4.0)
    if kind == pa.float16():
        values = values.astype(np.float16)
    column = pa.array(values, kind)
    data = files.read(parquet(tmp_path, id=column, label=column, f=column))
    assert data.node_ids == [0, 1, 2, 3]
    assert data.class_names == ["0", "1", "2", "3"]
    assert data.x.squeeze(1).tolist() == [0, 1, 2, 3]


def test_large_numbers_of_parquet(tmp_path: Path):
    most = pa.array([0, 1, 2, 2**64 - 1], pa.uint64())
    data = files.read(parquet(tmp_path, label=most))
    assert str(2**64 - 1) in data.class_names
    with pytest.raises(
        InputError, match=r"row 4, column 'f': got 1\.8.*e\+19, expected a magnitude"
    ):
        files.read(parquet(tmp_path, f=most))
    half = pa.array(np.array([0, 0.5, 1, 2], np.float16))
    with pytest.raises(InputError, match=r"row 2, column 'label': got 0\.5, expected text or"):
        files.read(parquet(tmp_path, label=half))


def test_a_plain_tensor_is_not_copied():
    x = torch.rand(3, 2)
    assert plain(x, "x").data_ptr() == x.data_ptr()
