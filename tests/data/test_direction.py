"""Directed graphs: where direction comes from, and that it is kept and checked."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Batch, Data

from dgt.config import DataConfig
from dgt.data import files, load
from dgt.data.direction import directed_adjacency, is_directed, weighted_directed_adjacency
from dgt.data.edge_tables import of_table
from dgt.data.recipe.order import sorted_by_id
from dgt.errors import InputError

NODES = "id,label\nd,x\nb,y\nc,x\na,y\n"
EDGES = "source,target\nd,b\nb,d\nb,c\nc,a\nc,a\na,a\n"


def links(data: Data) -> set[tuple[str, str]]:
    """Returns the directed edges as pairs of the user's ids."""
    ids = data.get("node_ids", range(data.num_nodes))
    return {(ids[u], ids[v]) for u, v in data.directed_edge_index.t().tolist()}


def folder(path: Path, **tables: str) -> Path:
    for name, text in {"nodes": NODES, **tables}.items():
        (path / f"{name.replace('_', '.')}.csv").write_text(text)
    return path


def test_a_table_is_directed_if_a_setting_says_so(tmp_path: Path) -> None:
    path = folder(tmp_path, edges=EDGES)
    assert not is_directed(files.read(path))
    assert not is_directed(files.read(path, DataConfig(directed=False)))
    data = files.read(path, DataConfig(directed=True))
    assert links(data) == {("d", "b"), ("b", "d"), ("b", "c"), ("c", "a")}
    assert torch.equal(data.edge_index, files.read(path).edge_index)
    assert files.info(data)["directed"] is True
    again = files.normalize(data)
    assert torch.equal(again.directed_edge_index, data.directed_edge_index)
    assert not is_directed(files.normalize(data, directed=False))
    moved = files.normalize(sorted_by_id(data))
    assert moved.node_ids == ["a", "b", "c", "d"]
    assert links(moved) == links(data)


def test_weights_and_tables_keep_their_direction(tmp_path: Path) -> None:
    pays = "source,target,weight\nd,b,2\nb,d,5\nd,b,1\nc,a,4\n"
    path = folder(tmp_path, edges_pays=pays, edges_knows="source,target\na,b\nb,d\n")
    data = files.read(path, DataConfig(directed=True))
    assert torch.equal(data.edge_weights, files.read(path).edge_weights)
    number = {name: node for node, name in enumerate(data.node_ids)}
    pairs = map(tuple, data.directed_edge_index.t().tolist())
    rows = dict(zip(pairs, data.directed_edge_weights.tolist(), strict=True))
    wanted = {"db": [0, 3], "bd": [1, 5], "ca": [0, 4], "ab": [1, 0]}
    assert data.edge_names == ["knows", "pays"]
    assert rows == {(number[u], number[v]): weights for (u, v), weights in wanted.items()}
    own = of_table(data, "pays")
    assert links(own) == {("d", "b"), ("b", "d"), ("c", "a")}
    A = weighted_directed_adjacency(own).toarray()
    assert A[number["d"], number["b"]] / A[number["b"], number["d"]] == pytest.approx(3 / 5)
    assert links(of_table(data, "knows")) == {("a", "b"), ("b", "d")}
    moved = files.normalize(sorted_by_id(data))
    assert links(moved) == links(data)
    assert sorted(moved.directed_edge_weights.sum(1).tolist()) == [1, 3, 4, 6]


@pytest.mark.parametrize(
    ("edges", "directed"),
    [
        ([[0, 1, 1, 2], [1, 0, 2, 0]], True),  # one edge in both directions, two in one
        ([[0, 1, 2], [1, 2, 0]], False),  # a list of undirected edges looks the same
        ([[0, 1, 1, 2], [1, 0, 2, 1]], False),
    ],
)
def test_the_edges_of_a_data_object_may_tell(edges: list[list[int]], directed: bool) -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor(edges))
    assert is_directed(files.normalize(data)) == directed
    assert not is_directed(files.normalize(data, directed=False))


def test_data_that_is_said_to_be_directed() -> None:
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[2, 1, 1, 0], [0, 2, 2, 0]]))
    made = files.normalize(data, directed=True)
    assert made.directed_edge_index.tolist() == [[1, 2], [2, 0]]
    with pytest.raises(InputError, match="directed: all edges are in both directions"):
        files.normalize(files.normalize(data), directed=True)
    joined = Batch.from_data_list([made, made])
    assert joined.directed_edge_index.tolist() == [[1, 2, 4, 5], [2, 0, 5, 3]]
    part = made.subgraph(torch.tensor([0, 2]))  # PyG does not renumber directed_edge_index
    with pytest.raises(InputError, match="directed_edge_index"):
        files.normalize(part)
    made.directed_edge_index = torch.tensor([[0], [1]])
    with pytest.raises(InputError, match="has other edges than edge_index"):
        files.normalize(made)


def test_files_and_networkx_say_it(tmp_path: Path) -> None:
    graph = nx.gn_graph(8, seed=0)
    data = files.from_networkx(graph)
    assert links(data) == set(graph.edges)
    assert not is_directed(files.from_networkx(graph.to_undirected()))
    files.write_npz(tmp_path / "graph.npz", data)
    again = files.read(tmp_path / "graph.npz")
    assert torch.equal(again.directed_edge_index, data.directed_edge_index)
    assert torch.equal(again.edge_index, data.edge_index)
    assert not is_directed(files.read(tmp_path / "graph.npz", DataConfig(directed=False)))
    torch.save({"edge_index": data.directed_edge_index, "num_nodes": 8}, tmp_path / "graph.pt")
    assert not is_directed(files.read(tmp_path / "graph.pt"))
    read = files.read(tmp_path / "graph.pt", DataConfig(directed=True))
    assert torch.equal(read.directed_edge_index, data.directed_edge_index)
    np.savez(tmp_path / "wrong.npz", edges=np.array([[0, 1]]), num_nodes=2, directed=np.array(7))
    with pytest.raises(InputError, match="directed: expected true or false"):
        files.read(tmp_path / "wrong.npz")


def test_benchmarks_without_direction_refuse_it() -> None:
    with pytest.raises(
        InputError, match="cora: --directed: the direction of its edges is not known"
    ):
        load("cora", settings=DataConfig(directed=True))


def test_a_matrix_of_out_links_and_its_transpose() -> None:
    edges = torch.tensor([[0, 0, 2, 1], [1, 1, 0, 1]])
    data = Data(num_nodes=3, edge_index=edges, directed_edge_index=edges)
    A = directed_adjacency(data)
    assert A.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [1, 0, 0]]
    assert (directed_adjacency(data, "in").toarray() == A.toarray().T).all()
    with pytest.raises(InputError, match="needs directed edges"):
        directed_adjacency(Data(num_nodes=3, edge_index=edges))


@pytest.mark.parametrize(("name", "accuracy"), [("chameleon", 79.5), ("squirrel", 74.7)])
def test_out_links_are_those_of_the_raw_file(
    name: str,
    accuracy: float,
    benchmark_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The nearest training node by the cosine of out-links has the label far more often than by
    in-links, so the direction is not turned around."""
    monkeypatch.setenv("DGT_CACHE", str(tmp_path))
    data = load(name, "published")
    raw = benchmark_data / f"wikipedia/{name}/geom_gcn/raw/out1_graph_edges.txt"
    rows = np.loadtxt(raw, skiprows=1, dtype=int).tolist()
    assert links(data) == {(u, v) for u, v in rows if u != v}
    A = directed_adjacency(data)
    unit = scipy.sparse.diags_array(1 / np.sqrt(np.maximum(np.diff(A.indptr), 1))) @ A
    alike, y, found = (unit @ unit.T).toarray(), data.y.numpy(), []
    for train, test in zip(data.train_mask.T.numpy(), data.test_mask.T.numpy(), strict=True):
        nearest = y[train][alike[np.ix_(test, train)].argmax(axis=1)]
        found.append((nearest == y[test]).mean())
    assert 100 * np.mean(found) == pytest.approx(accuracy, abs=0.1)


def test_an_older_cached_benchmark_is_read_again(
    benchmark_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DGT_CACHE", str(tmp_path))
    data = load("chameleon-filtered")
    assert data.directed_edge_index.size(1) == 13_534
    old = files.normalize(data, directed=False)
    files.write_npz(tmp_path / "graphs" / "chameleon-filtered.npz", old)
    again = load("chameleon-filtered")
    assert torch.equal(again.directed_edge_index, data.directed_edge_index)
    files.write_npz(tmp_path / "graphs" / "chameleon-filtered.npz", old)
    monkeypatch.setenv("DGT_DATA", str(tmp_path / "nothing"))

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network in tests")

    monkeypatch.setattr("dgt.data.raw_files.open_url", refuse)
    kept = load("chameleon-filtered")  # without its raw files, it is still there
    assert not is_directed(kept)
    assert torch.equal(kept.edge_index, data.edge_index)
