"""Graphs in .npz and .pt files, and files of predictions."""

import csv
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Batch, Data, HeteroData

from dgt.data import files
from dgt.errors import InputError

X = np.array([[0, 1.5], [2, 0], [0, 0]], dtype=np.float32)
EDGES = np.array([[0, 1], [2, 1]])
ROWS = [[0, 1, 1, 2], [1, 0, 2, 1]]  # EDGES as edge_index, in both directions


def test_npz_in_our_names_and_in_published_ones(tmp_path: Path) -> None:
    masks = np.eye(3, dtype=bool)
    np.savez(tmp_path / "a.npz", x=X, y=[1, 0, -1], edge_index=EDGES.T, train_mask=masks[0])
    data = files.read(tmp_path / "a.npz")
    assert np.array_equal(data.x.numpy(), X)
    assert data.y.tolist() == [1, 0, -1]
    assert data.edge_index.tolist() == ROWS
    assert data.train_mask.tolist() == [True, False, False]

    splits = np.stack([masks[0], masks[2]])  # (S, N)
    published = {"node_features": X, "node_labels": [1, 0, 1], "edges": EDGES}
    np.savez(tmp_path / "b.npz", **published, train_masks=splits)
    data = files.read(tmp_path / "b.npz")
    assert data.edge_index.tolist() == ROWS
    assert data.train_mask.tolist() == [[True, False], [False, False], [False, True]]


def test_npz_kinds_of_values(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    for x in (X.astype(">f8"), X.astype(np.float16), X.astype(np.int8), X > 0):
        np.savez(path, features=x, edges=EDGES.astype(np.uint16), labels=np.array(["b", "", "a"]))
        data = files.read(path)
        assert np.array_equal(data.x.numpy(), x.astype(np.float32))
        assert data.edge_index.tolist() == ROWS
        assert data.y.tolist() == [1, -1, 0]
        assert data.class_names == ["a", "b"]


def test_npz_sparse_features(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    m = scipy.sparse.csr_matrix(X)
    parts = {"x_indptr": m.indptr, "x_indices": m.indices, "x_shape": m.shape, "x_data": m.data}
    np.savez(path, edges=EDGES, **parts)
    assert np.array_equal(files.read(path).x.numpy(), X)
    del parts["x_data"]
    np.savez(path, edges=EDGES, **parts)
    assert np.array_equal(files.read(path).x.numpy(), (X != 0).astype(np.float32))
    np.savez(path, edges=EDGES, **parts | {"x_indices": m.indices + 5})
    with pytest.raises(InputError, match=r"x_\*: not a matrix in CSR format"):
        files.read(path)
    np.savez(path, edges=EDGES, **parts | {"x_indptr": [0, 1]})
    with pytest.raises(InputError, match=r"x_\*: not a matrix in CSR format"):
        files.read(path)
    np.savez(path, edges=EDGES, x_indptr=m.indptr)
    with pytest.raises(InputError, match="sparse features without x_indices, x_shape"):
        files.read(path)
    np.savez(path, edges=EDGES, x=X, **parts)
    with pytest.raises(InputError, match="both dense and sparse"):
        files.read(path)


@pytest.mark.parametrize("density", [0.05, 0.9])
def test_npz_written_and_read(tmp_path: Path, density: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((50, 20)) * (rng.random((50, 20)) < density)
    data = files.normalize(
        Data(
            x=torch.from_numpy(x),
            edge_index=torch.from_numpy(rng.integers(0, 50, (2, 80))),
            y=torch.from_numpy(rng.integers(-1, 3, 50)),
            val_mask=torch.from_numpy(rng.random((50, 4)) < 0.5),
            class_names=["ä", "b,", "c"],
            node_ids=[f"n{i}" for i in range(50)],
            feature_names=[f"f{i}" for i in range(20)],
        )
    )
    path = tmp_path / "graph.npz"
    files.write_npz(path, data)
    assert os.listdir(tmp_path) == ["graph.npz"]
    back = files.read(path)
    for key in ("x", "edge_index", "y", "val_mask"):
        assert torch.equal(back[key], data[key])
        assert back[key].dtype == data[key].dtype
    for key in ("class_names", "node_ids", "feature_names"):
        assert back[key] == data[key]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": X}, "edge_index is missing"),
        ({"edges": EDGES}, "unknown number of nodes"),
        ({"edges": EDGES.T.repeat(2, 1), "x": X}, "edges: got shape (2, 4), expected (E, 2)"),
        ({"edges": EDGES, "x": X, "train_idx": [0]}, "unknown array 'train_idx'; did you mean"),
        ({"edges": EDGES, "x": X, "features": X}, "'x' and 'features' are the same array"),
        (
            {"edges": EDGES, "x": np.array([["a"], ["b"], ["c"]])},
            "x: got an array of type <U1, expected",
        ),
        (
            {"edges": EDGES, "x": np.array([object()] * 3)},
            "not a readable .npz file: Object arrays",
        ),
        ({"edges": EDGES + 1, "x": X}, "edge_index: edge 1: got node 3, expected 0 to 2"),
        ({"edges": EDGES, "x": X * np.nan}, "x: node 0, feature 0: got nan"),
        (
            {"edges": EDGES, "x": X, "train_masks": [True]},
            "train_masks: got shape (1,), expected (S, N)",
        ),
        (
            {"edges": EDGES, "x": X, "y": np.array([["a"]] * 3)},
            "y: got shape (3, 1), expected (N,)",
        ),
    ],
)
def test_mistakes_in_npz(tmp_path: Path, arrays: dict[str, object], message: str) -> None:
    path = tmp_path / "own.npz"
    np.savez(path, **arrays)
    with pytest.raises(InputError) as error:
        files.read(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


def test_damaged_and_foreign_npz(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    np.savez_compressed(path, x=np.random.default_rng(0).random((50, 9)), edges=EDGES)
    whole = path.read_bytes()
    broken = [whole[:n] for n in (0, 1, 30, len(whole) // 2, len(whole) - 1)]
    for start in range(40, len(whole) - 300, 200):  # damage inside the arrays
        broken.append(whole[:start] + bytes(20) + whole[start + 20 :])
    for content in [*broken, b"\xff\xd8\xff\xe0JFIF" * 50, b"x,y\n1,2\n"]:
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"own.npz: "):
            files.read(path)
    np.save(tmp_path / "array.npy", X)
    path.write_bytes((tmp_path / "array.npy").read_bytes())
    with pytest.raises(InputError, match=r"not an .npz file"):
        files.read(path)
    with pytest.raises(InputError, match="no such file"):
        files.read_npz(tmp_path / "none.npz")


def saved() -> Data:
    edges = torch.from_numpy(EDGES.T.copy())
    return Data(x=torch.from_numpy(X), edge_index=edges, y=torch.tensor([1, 0, -1]), note="any")


def test_pt_with_data_or_a_dict(tmp_path: Path) -> None:
    path = tmp_path / "own.pt"
    tensors = saved().to_dict()
    del tensors["note"]
    for content in (saved(), tensors, tensors | {"class_names": ["u", "v"]}):
        torch.save(content, path)
        data = files.read(path)
        assert np.array_equal(data.x.numpy(), X)
        assert data.edge_index.tolist() == ROWS
        assert data.y.tolist() == [1, 0, -1]
        assert data.class_names in (["0", "1"], ["u", "v"])
        assert data.name == str(path)
    torch.save(saved(), path, _use_new_zipfile_serialization=False)
    assert files.read(path).edge_index.tolist() == ROWS


class Evil:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> object:
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("new", [True, False])
def test_a_pt_that_would_run_code_is_refused(tmp_path: Path, new: bool) -> None:
    target = tmp_path / "made"
    for content in ({"x": Evil(target)}, Data(x=Evil(target)), Evil(target)):
        torch.save(content, tmp_path / "evil.pt", _use_new_zipfile_serialization=new)
        message = r"evil.pt: refused: loading it would execute \w+.mkdir"
        with pytest.raises(InputError, match=message):
            files.read(tmp_path / "evil.pt")
        assert not target.exists()
    torch.load(tmp_path / "evil.pt", weights_only=False)
    assert target.exists()  # loading the file without protection does execute code


def test_loading_allows_no_class_for_others(tmp_path: Path) -> None:
    before = set(torch.serialization.get_safe_globals())
    torch.save(saved(), tmp_path / "own.pt")
    files.read(tmp_path / "own.pt")
    assert set(torch.serialization.get_safe_globals()) == before


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_other_pt_files(tmp_path: Path) -> None:
    path = tmp_path / "own.pt"
    for content, message in (
        ([saved()], "got list, expected a PyG Data or a dict of tensors"),
        (torch.ones(3), "got Tensor, expected a PyG Data"),
        (HeteroData(), "own.pt: "),
        (Batch.from_data_list([saved(), saved()]), "own.pt: refused"),
        ({"x": np.ones(3)}, "own.pt: refused: loading it would execute numpy"),
        ({"weight": torch.ones(3)}, "unknown array 'weight'"),
        ({3: torch.ones(3)}, "own.pt: "),
        (Data(x=torch.ones(3, 1)), "own.pt: edge_index is missing"),
    ):
        torch.save(content, path)
        with pytest.raises(InputError) as error:
            files.read(path)
        assert message in str(error.value)
        assert "\n" not in str(error.value)
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(path))
    with pytest.raises(InputError, match=r"not a file written by torch\.save, or damaged"):
        files.read(path)


def test_damaged_and_foreign_pt(tmp_path: Path) -> None:
    path = tmp_path / "own.pt"
    torch.save(saved(), path)
    whole = path.read_bytes()
    truncated = [whole[:n] for n in (0, 1, 10, 100, len(whole) // 2, len(whole) - 1)]
    for content in [*truncated, b"\xff\xd8\xff\xe0JFIF" * 50, b"x,y\n1,2\n", b"\x80\x02}."]:
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"own.pt: "):
            files.read(path)
    with pytest.raises(InputError, match="no such file"):
        files.read_pt(tmp_path / "none.pt")


def test_a_flipped_bit_in_a_pt_is_found(tmp_path: Path) -> None:
    path = tmp_path / "own.pt"
    torch.save(saved(), path)
    content = path.read_bytes()
    place = content.find(saved().x.numpy().tobytes()) + 2
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    with pytest.raises(InputError, match=r"own.pt: damaged: '.*' has another checksum"):
        files.read(path)


@pytest.mark.parametrize("ids", [[3, 1, 2], ["a,b", '"', "007"], ["x", 7, "y"]])
def test_predictions(tmp_path: Path, ids: list[str | int]) -> None:
    names, chances = ["cat", "a,b", 'q"\n'], [0.5, 0.75, 1.0]
    probabilities = np.diag(chances).astype(np.float32) + 0.125 * (1 - np.eye(3, dtype=np.float32))
    parts = ["train", None, "test"]
    best = np.array(chances, dtype=np.float32)
    found = files.Predictions(ids, pa.array(names), parts, best, names, probabilities)
    files.write_predictions(tmp_path / "p.csv", found)
    files.write_predictions(tmp_path / "p.parquet", found)
    with open(tmp_path / "p.csv", encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    assert header == [
        "id",
        "prediction",
        "probability",
        "split",
        *map("probability:{}".format, names),
    ]
    for n, (node, name, chance, part, *each) in enumerate(rows):
        assert (node, name, float(chance)) == (str(ids[n]), names[n], chances[n])
        assert part == (parts[n] or "")
        assert [float(p) for p in each] == probabilities[n].tolist()
    table = pq.read_table(tmp_path / "p.parquet")
    assert table.column_names == header
    whole = all(isinstance(i, int) for i in ids)
    assert table["id"].to_pylist() == (ids if whole else [str(i) for i in ids])
    assert table["prediction"].to_pylist() == names
    assert table["probability"].to_pylist() == chances
    assert table["split"].to_pylist() == parts


def test_predictions_to_another_kind_of_file(tmp_path: Path) -> None:
    found = files.Predictions([1], pa.array(["a"]), [None])
    for name in ("p.txt", "p", "p.csv.gz"):
        with pytest.raises(InputError, match=r"expected a .csv or .parquet file"):
            files.write_predictions(tmp_path / name, found)
    assert os.listdir(tmp_path) == []
