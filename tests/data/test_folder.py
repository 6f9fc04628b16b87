import csv
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dgt.data import files
from dgt.data.splits import choose
from dgt.errors import InputError

NODES = "id,label,split,age,height\na,x,train,1,0.5\nb,y,val,2,1.5\nc,,,3,-2e3\nd,x,test,4,0\n"
EDGES = "source,target\na,b\nb,c\n"


@pytest.fixture
def folder(tmp_path: Path) -> Callable[..., Path]:
    def write(nodes: str | bytes = NODES, edges: str | bytes = EDGES) -> Path:
        for name, text in (("nodes.csv", nodes), ("edges.csv", edges)):
            (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return tmp_path

    return write


def pairs(data: object) -> set[tuple[object, object]]:
    """Returns the undirected edges as pairs of the user's ids."""
    ids = data.node_ids  # type: ignore[attr-defined]
    return {(ids[u], ids[v]) for u, v in data.edge_index.t().tolist()}  # type: ignore[attr-defined]


def test_reads_a_folder(folder: Callable[..., Path]) -> None:
    path = folder()
    data = files.read(path)
    assert data.x.dtype == torch.float32
    assert data.x.tolist() == [[1, 0.5], [2, 1.5], [3, -2000], [4, 0]]
    assert data.feature_names == ["age", "height"]
    assert data.node_ids == ["a", "b", "c", "d"]
    assert data.class_names == ["x", "y"]
    assert data.y.tolist() == [0, 1, -1, 0]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.train_mask.tolist() == [True, False, False, False]
    assert data.val_mask.tolist() == [False, True, False, False]
    assert data.test_mask.tolist() == [False, False, False, True]
    assert data.name == str(path)
    expected = {"nodes": 4, "edges": 2, "features": 2, "classes": 2, "homophily": 0, "labelled": 3}
    expected["directed"] = False
    assert files.info(data) == expected


odd = st.text(
    st.one_of(st.sampled_from("\",;\n\r\t'[]#\\ é中🙂0"), st.characters(exclude_categories=["Cs"])),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(
    ids=st.one_of(
        st.lists(odd, min_size=2, max_size=12, unique=True),
        st.lists(st.integers(-(10**17), 10**17), min_size=2, max_size=12, unique=True),
    ),
    draw=st.data(),
    kind=st.sampled_from(["csv", "parquet"]),
    as_list=st.booleans(),
)
def test_what_is_written_is_read(
    ids: list[str] | list[int], draw: st.DataObject, kind: str, as_list: bool
) -> None:
    n = len(ids)
    label = st.one_of(st.none(), st.sampled_from(["x, y", '"', "ä", "01", "1"]), odd)
    labels = draw.draw(st.lists(label, min_size=n, max_size=n))
    numbers = st.floats(-(2.0**49), 2.0**49, width=32)
    x = draw.draw(st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=n, max_size=n))
    node = st.integers(0, n - 1)
    edges = [(0, n - 1), *draw.draw(st.lists(st.tuples(node, node), max_size=20))]

    columns: dict[str, list[object]] = {"id": list(ids), "label": list(labels)}
    if as_list:
        columns["features"] = list(x)
    else:
        columns |= {"a": [row[0] for row in x], "b": [row[1] for row in x]}
    ends = {"source": [ids[u] for u, _ in edges], "target": [ids[v] for _, v in edges]}
    with tempfile.TemporaryDirectory() as folder:
        for name, table in (("nodes", columns), ("edges", ends)):
            path = Path(folder) / f"{name}.{kind}"
            if kind == "parquet":
                pq.write_table(pa.table(table), path)
                continue
            with open(path, "w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(table)
                for row in zip(*table.values(), strict=True):
                    writer.writerow([json.dumps(c) if isinstance(c, list) else c for c in row])
        data = files.read(folder)

    whole = all(isinstance(i, int) for i in ids)
    if kind == "parquet" or whole:
        assert data.node_ids == ids
    assert [str(i) for i in data.node_ids] == [str(i) for i in ids]
    assert [data.class_names[c] if c >= 0 else None for c in data.y.tolist()] == labels
    assert np.array_equal(data.x.numpy(), np.array(x, dtype=np.float32))
    expected = {frozenset((u, v)) for u, v in edges if u != v}
    got = data.edge_index.t().tolist()
    assert sorted(got) == sorted([a, b] for e in expected for a, b in (tuple(e), tuple(e)[::-1]))


def test_ids_stay_as_they_are_written(folder: Callable[..., Path]) -> None:
    data = files.read(folder("id\n007\n7\n7.0\n", "source,target\n007,7\n7.0,7\n"))
    assert data.node_ids == ["007", "7", "7.0"]
    assert pairs(data) == {("007", "7"), ("7", "007"), ("7.0", "7"), ("7", "7.0")}
    assert files.read(folder("id\n-3\n7\n", "source,target\n7,-3\n")).node_ids == [-3, 7]
    for wrong in ("07", "7.0", " 7", "+7"):
        with pytest.raises(InputError, match="row 2, column 'source'"):
            files.read(folder("id\n8\n7\n", f"source,target\n{wrong},8\n"))


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([3, 5], pa.int32()),
        pa.array([3, 5], pa.uint64()),
        pa.array([3.0, 5.0]),
        pa.array(["3", "5"]),
        pa.array(["3", "5"], pa.large_string()),
        pa.array(["3", "5"]).dictionary_encode(),
    ],
)
def test_ids_of_one_kind_find_those_of_another(tmp_path: Path, ids: pa.Array) -> None:
    pq.write_table(pa.table({"id": ids}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\n5,3\n")
    data = files.read(tmp_path)
    assert data.node_ids == (["3", "5"] if "string" in str(ids.type) else [3, 5])
    assert data.edge_index.tolist() == [[0, 1], [1, 0]]


def test_ids_of_twenty_digits(tmp_path: Path) -> None:
    ids = [2**64 - 1, 1_600_000_000_000_000_000]
    table = pa.table({"id": pa.array(ids, pa.uint64())})
    pq.write_table(table, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text(f"source,target\n{ids[0]},{ids[1]}\n")
    data = files.read(tmp_path)
    assert data.node_ids == ids
    found = files.Predictions(ids, pa.array(["a", "b"]), [None, None])
    files.write_predictions(tmp_path / "p.csv", found)
    lines = (tmp_path / "p.csv").read_text().splitlines()[1:]
    assert [line.split(",")[0].strip('"') for line in lines] == [str(i) for i in ids]


def test_classes_in_the_order_of_numbers(folder: Callable[..., Path]) -> None:
    nodes = "id,label\n1,10\n2,9\n3,\n4,10\n"
    data = files.read(folder(nodes, "source,target\n1,2\n"))
    assert data.class_names == ["9", "10"]
    assert data.y.tolist() == [1, 0, -1, 1]
    data = files.read(folder(nodes.replace("9", "nine"), "source,target\n1,2\n"))
    assert data.class_names == ["10", "nine"]


def test_labels_in_parquet(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
    nodes = tmp_path / "nodes.parquet"
    for labels, y, names in (
        (pa.array([2.0, None, float("nan")]), [0, -1, -1], ["2"]),
        (pa.array([True, False, None]), [1, 0, -1], ["false", "true"]),
        (pa.array(["b", "a", None]).dictionary_encode(), [1, 0, -1], ["a", "b"]),
        (pa.nulls(3), [-1, -1, -1], []),
    ):
        pq.write_table(pa.table({"id": [1, 2, 3], "label": labels}), nodes)
        data = files.read(tmp_path)
        assert (data.y.tolist(), data.class_names) == (y, names)
    pq.write_table(pa.table({"id": [1, 2], "label": [1.0, 0.5]}), nodes)
    with pytest.raises(
        InputError, match=r"row 2, column 'label': got 0.5, expected text or a whol"
    ):
        files.read(tmp_path)
    pq.write_table(pa.table({"id": [1, 2], "label": [[1], [2]]}), nodes)
    with pytest.raises(InputError, match=r"column 'label': got list<.*expected text or whole"):
        files.read(tmp_path)


def test_a_graph_without_features_gets_a_constant_one_and_says_so(
    folder: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    data = files.read(folder("id\na\nb\nc\n"))
    assert data.x.tolist() == [[1], [1], [1]]
    assert data.y.tolist() == [-1, -1, -1]
    assert "no features; using one constant feature" in caplog.text
    assert "train_mask" not in data


def test_unused_columns_of_edges_are_named(
    folder: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    data = files.read(folder(edges="since,source,target\n1,a,b\n2,b,c\n"))
    assert data.num_edges == 4
    assert "edges.csv: ignoring column 'since'; --weight NAME uses one" in caplog.text


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1.0, 2.0], [3.0, 4.0]]),
        pa.array([[1, 2], [3, 4]], pa.list_(pa.int8(), 2)),
        pa.array([[1, 2], [3, 4]], pa.large_list(pa.float16())),
    ],
)
def test_list_columns_in_parquet(tmp_path: Path, values: pa.Array) -> None:
    pq.write_table(pa.table({"id": ["a", "b"], "emb": values}), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    data = files.read(tmp_path)
    assert data.x.tolist() == [[1, 2], [3, 4]]
    assert "feature_names" not in data


def test_kinds_of_numbers(folder: Callable[..., Path], tmp_path: Path) -> None:
    data = files.read(folder("id,a,b,c\n1,true,+5,1\n2,False, .5 ,2.5\n", "source,target\n1,2\n"))
    assert data.x.tolist() == [[1, 5, 1], [0, 0.5, 2.5]]
    (tmp_path / "nodes.csv").unlink()
    nodes = pa.table({"id": [1, 2], "d": pa.array([1, 2], pa.decimal128(5, 2)), "e": [True, False]})
    pq.write_table(nodes, tmp_path / "nodes.parquet")
    assert files.read(tmp_path).x.tolist() == [[1, 1], [2, 0]]


def test_a_byte_order_mark_and_windows_lines(folder: Callable[..., Path]) -> None:
    windows = ("\ufeff" + NODES.replace("\n", "\r\n")).encode()
    data = files.read(folder(windows))
    assert data.node_ids == ["a", "b", "c", "d"]
    assert data.class_names == ["x", "y"]


def test_a_late_cell_of_another_kind_in_a_long_file(folder: Callable[..., Path]) -> None:
    # Longer than the part from which the CSV reader infers the type of a column.
    rows = [f"{i},{i}" for i in range(200_000)]
    rows[150_000] = "150000,0.5"
    data = files.read(folder("id,a\n" + "\n".join(rows) + "\n", "source,target\n1,2\n"))
    assert data.num_nodes == 200_000
    assert data.x[150_000].item() == 0.5
    rows[190_000] = "190000,oops"
    with pytest.raises(InputError, match="row 190002, column 'a': got 'oops', expected a number"):
        files.read(folder("id,a\n" + "\n".join(rows) + "\n", "source,target\n1,2\n"))


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ("label\nx\n", EDGES, "nodes.csv: no column 'id', found 'label'"),
        (NODES, "a,b\na,b\n", "edges.csv: no column 'source', found 'a', 'b'"),
        ("id|x\na|1\n", EDGES, "nodes.csv: no column 'id', found 'id|x'"),
        (NODES, "source,target\na,b\nb,zz\n", "row 3, column 'target': got 'zz', expected an id"),
        (NODES, "source,target\na,b\n\n\nzz,b\n", "row 5, column 'source': got 'zz'"),
        (NODES, "source,target\na,\n", "row 2, column 'target': got nothing, expected the id"),
        (NODES, "source,target\na,b,c\n", "row 2: got 3 cells, expected 2"),
        ("id,a\nx,1\ny\n", EDGES, "nodes.csv: row 3: got 1 cells, expected 2"),
        ("id,a\nx,1\nx,2\n", EDGES, "row 3, column 'id': got 'x', expected a unique id: row 2"),
        ('id,a\n"x\n",1\ny,2\ny,3\n', EDGES, "row 5, column 'id': got 'y'"),
        ("id,a\nx,1\n,2\n", EDGES, "row 3, column 'id': got nothing, expected an id"),
        ("id,a\na,1\nb,-inf\n", EDGES, "row 3, column 'a': got -inf, expected a finite number"),
        (
            "id,a\na,1e39\nb,1\n",
            EDGES,
            "row 2, column 'a': got 1e+39, expected a magnitude of at most 1e+15",
        ),
        ("id,a\na,1\nb,red\n", EDGES, "row 3, column 'a': got 'red', expected a number"),
        (
            "id,split\na,train\nb,tset\n",
            EDGES,
            "row 3, column 'split': got 'tset', expected train,",
        ),
        ("id,split\na,Train\n", EDGES, "row 2, column 'split': got 'Train', expected train, val"),
        ("id,a,a\nx,1,2\n", EDGES, "nodes.csv: two columns are named 'a', expected unique names"),
        (",id,a\n0,a,1\n1,b,2\n", EDGES, "column 1 has no name"),
        ("id,a\n", EDGES, "nodes.csv: empty graph: no rows"),
        ("", EDGES, "nodes.csv: empty file, expected the columns id"),
        (NODES, "source,target\n", "edges.csv: empty graph: no rows"),
        (NODES, "source,target\na,a\n", "empty graph: no edge between two different nodes"),
        (
            b"id,a\na,1\n\xe9,2\n",
            EDGES,
            "nodes.csv: row 3: got the byte 0xe9, expected text in UTF-8; convert",
        ),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF\x00", EDGES, "nodes.csv: not a CSV file"),
        (NODES.encode("utf-16-le"), EDGES, "nodes.csv: "),
        (
            'id,f\na,"[1,2]"\nb,"[1]"\n',
            EDGES,
            "row 3, column 'f': got 'a list of 1', expected a list of 2",
        ),
        ('id,f\na,"[1,x]"\nb,"[1,2]"\n', EDGES, "row 2, column 'f': got '[1,x]', expected a list"),
        ('id,f\na,"[1,2]"\nb,3\n', EDGES, "row 3, column 'f': got '3', expected a list such as"),
        ('id,f\na,"[]"\nb,"[]"\n', EDGES, "row 2, column 'f': got '[]', expected a list of numb"),
        ('id,label\na,"x\nb,y\n', EDGES, "nodes.csv: row 2: unexpected end of data"),
        ('id,label\na,"x\nb,"y\nc,z\n', "source,target\na,c\n", "nodes.csv: row 2: "),
    ],
)
def test_mistakes_in_csv(
    folder: Callable[..., Path], nodes: str | bytes, edges: str, message: str
) -> None:
    path = folder(nodes, edges)
    before = sorted(path.iterdir())
    with pytest.raises(InputError) as error:
        files.read(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert sorted(path.iterdir()) == before


def test_a_bad_byte_far_into_a_file(folder: Callable[..., Path]) -> None:
    nodes = "id,label\n" + "".join(f"n{i},x\n" for i in range(20_000))
    with pytest.raises(InputError, match=r"nodes.csv: row 20002: got the byte 0xe9, .*UTF-8"):
        files.read(folder(nodes.encode() + b"\xe9,x\n", "source,target\nn1,n2\n"))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"id": ["a", None]}, "row 2, column 'id': got nothing, expected an id"),
        ({"id": ["a", "a"]}, "row 2, column 'id': got 'a', expected a unique id: row 1"),
        ({"id": [1.5, 2.0]}, "row 1, column 'id': got 1.5, expected text or a whole number"),
        ({"id": [1.0, float("inf")]}, "row 2, column 'id': got inf, expected text or a whole num"),
        ({"id": [1e300, 2.0]}, "row 1, column 'id': got 1e+300, expected text or a whole number"),
        ({"id": ["a", "b"], "f": [b"1", b"2"]}, "row 1, column 'f': got b'1', expected a number"),
        ({"id": ["a", "b"], "f": [[1, 2], [3]]}, "row 2, column 'f': got 'a list of 1'"),
        ({"id": ["a", "b"], "f": [[1.0], [float("inf")]]}, "row 2, column 'f': got inf"),
        ({"id": ["a", "b"], "__index_level_0__": [4, 5]}, "column 2 has no name"),
        ({"x": [1]}, "nodes.parquet: no column 'id', found 'x'"),
    ],
)
def test_mistakes_in_parquet(
    tmp_path: Path, columns: dict[str, list[object]], message: str
) -> None:
    pq.write_table(pa.table(columns), tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    with pytest.raises(InputError) as error:
        files.read(tmp_path)
    assert message in str(error.value)


def test_duplicate_columns_in_parquet(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array([1]), pa.array([2])], ["id", "f", "f"])
    pq.write_table(table, tmp_path / "nodes.parquet")
    (tmp_path / "edges.csv").write_text(EDGES)
    with pytest.raises(InputError, match="two columns are named 'f'"):
        files.read(tmp_path)


def test_damaged_parquet(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    pq.write_table(pa.table({"id": [str(i) for i in range(1000)]}), path)
    (tmp_path / "edges.csv").write_text("source,target\n1,2\n")
    whole = path.read_bytes()
    for content in (b"", whole[:100], whole[: len(whole) // 2], whole[:-1], b"\xff\xd8\xff" * 99):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"nodes.parquet: not a readable Parquet file"):
            files.read(tmp_path)


def test_files_that_are_missing_or_too_many(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none: no such file or folder"):
        files.read(tmp_path / "none")
    with pytest.raises(InputError, match=r"no nodes.csv or nodes.parquet in this folder"):
        files.read(tmp_path)
    (tmp_path / "nodes.csv").write_text(NODES)
    with pytest.raises(InputError, match=r"no edges.csv or edges.parquet in this folder"):
        files.read(tmp_path)
    with pytest.raises(InputError, match=r"nodes.csv: expected a folder with nodes and edges"):
        files.read(tmp_path / "nodes.csv")
    (tmp_path / "edges.csv").write_text(EDGES)
    (tmp_path / "edges.parquet").write_text("")
    with pytest.raises(InputError, match=r"found edges.csv and edges.parquet, expected one"):
        files.read(tmp_path)


def test_splits_that_training_cannot_use_load_but_are_not_chosen(
    folder: Callable[..., Path],
) -> None:
    data = files.read(folder(NODES.replace("test", "")))
    with pytest.raises(InputError, match="split: no node in 'test'"):
        choose(data, "auto", 0)
    data = files.read(folder(NODES.replace("c,,,", "c,,test,")))
    with pytest.raises(InputError, match=r"1 nodes in 'test' have no label .*id 'c'"):
        choose(data, "auto", 0)
