"""Graphs in memory: PyG's Data and NetworkX."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data, HeteroData
from torch_geometric.utils import remove_self_loops, to_undirected

from dgt.data import files
from dgt.errors import InputError

PAIR = torch.tensor([[0], [1]])


def graph(**changes: object) -> Data:
    data = Data(
        x=torch.arange(8.0).reshape(4, 2),
        edge_index=torch.tensor([[0, 1, 1, 2, 2, 2], [1, 0, 2, 2, 1, 1]]),
        y=torch.tensor([0, 1, 1, -1]),
    )
    for key, value in changes.items():
        data[key] = value
    return data


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 12), st.data())
def test_edges_are_those_of_the_undirected_simple_graph(n: int, draw: st.DataObject) -> None:
    node = st.integers(0, n - 1)
    edges = [(0, 1), *draw.draw(st.lists(st.tuples(node, node), max_size=30))]
    data = files.normalize(Data(x=torch.ones(n, 1), edge_index=torch.tensor(edges).t()))
    simple = nx.Graph(edges)
    simple.remove_edges_from(list(nx.selfloop_edges(simple)))
    expected = sorted([u, v] for a, b in simple.edges for u, v in ((a, b), (b, a)))
    assert data.edge_index.t().tolist() == expected  # sorted, each direction once
    again = files.normalize(data)
    assert torch.equal(again.edge_index, data.edge_index)


def test_the_graph_itself_stays_as_it_is() -> None:
    data = graph(train_mask=torch.tensor([1, 0, 0, 0]), edge_attr=torch.ones(6))
    before = {key: value.clone() for key, value in data.to_dict().items()}
    out = files.normalize(data)
    out.y[0] = 5
    out.train_mask[0] = False
    assert all(torch.equal(data[key], value) for key, value in before.items())
    assert "edge_attr" not in out


def test_labels_become_classes_and_keep_their_names() -> None:
    out = files.normalize(graph(y=torch.tensor([7, 3, 7, -1])))
    assert out.y.tolist() == [1, 0, 1, -1]
    assert out.class_names == ["3", "7"]
    out = files.normalize(graph(y=torch.tensor([[2.0], [0.0], [float("nan")], [-1.0]])))
    assert out.y.tolist() == [1, 0, -1, -1]
    out = files.normalize(graph(class_names=["a", "b", "c"]))
    assert out.y.tolist() == [0, 1, 1, -1]
    assert out.class_names == ["a", "b", "c"]
    out = files.normalize(Data(x=torch.ones(2, 1), edge_index=PAIR))
    assert out.y.tolist() == [-1, -1]
    assert out.class_names == []


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning")
def test_features_of_other_kinds() -> None:
    dense = torch.tensor([[1, 0], [0, 2], [0, 0], [3, 0]])
    for x in (dense, dense.double(), dense.to_sparse(), dense.to_sparse_csr(), dense.numpy()):
        out = files.normalize(graph(x=x)).x
        assert out.dtype == torch.float32
        assert torch.equal(out, dense.float())


def test_a_graph_without_features(caplog: pytest.LogCaptureFixture) -> None:
    for data in (
        Data(edge_index=PAIR, num_nodes=3),
        Data(edge_index=PAIR, y=torch.tensor([0, 1, 0])),
        Data(edge_index=PAIR, x=torch.ones(3, 0)),
    ):
        caplog.clear()
        assert files.normalize(data).x.tolist() == [[1], [1], [1]]
        assert "no features" in caplog.text


def test_masks() -> None:
    one = torch.tensor([1, 0, 0, 1], dtype=torch.uint8)
    out = files.normalize(graph(train_mask=one, val_mask=one.bool()))
    assert out.train_mask.tolist() == out.val_mask.tolist() == [True, False, False, True]
    assert files.normalize(graph(train_mask=one[:, None])).train_mask.shape == (4,)
    assert files.normalize(graph(train_mask=torch.stack([one, one], 1))).train_mask.shape == (4, 2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.ones(4)}, "x: got shape (4,), expected (4, F)"),
        ({"x": torch.tensor([[1.0]] * 3 + [[float("nan")]])}, "x: node 3, feature 0: got nan"),
        (
            {"x": torch.full((4, 1), 1e39, dtype=torch.float64)},
            "x: node 0, feature 0: got 1e+39, expected a magnitude of at most 1e+15",
        ),
        ({"x": torch.ones(4, 1, dtype=torch.complex64)}, "x: got values of type complex64"),
        ({"x": "words"}, "x: got str, expected a tensor"),
        ({"x": torch.ones(0, 2), "y": None}, "empty graph: no nodes"),
        ({"edge_index": None}, "edge_index is missing"),
        ({"edge_index": torch.ones(3, 2).long()}, "edge_index: got shape (3, 2), expected (2, E)"),
        (
            {"edge_index": torch.ones(2, 2)},
            "edge_index: got values of type float32, expected integers",
        ),
        ({"edge_index": torch.tensor([[0, 1], [1, 4]])}, "edge 1: got node 4, expected 0 to 3"),
        ({"edge_index": torch.tensor([[0, -1], [1, 2]])}, "edge 1: got node -1, expected 0 to 3"),
        ({"edge_index": torch.tensor([[2], [2]])}, "no edge between two different nodes"),
        ({"edge_index": torch.ones(2, 0).long()}, "no edge between two different nodes"),
        ({"y": torch.ones(3).long()}, "y: got shape (3,), expected (4,): one class per node"),
        ({"y": torch.ones(4, 3)}, "y: got shape (4, 3), expected (4,)"),
        ({"y": torch.tensor([0, 1, 0.5, 1])}, "y: node 2: got 0.5, expected a class"),
        ({"y": torch.tensor([0, 1, -7, 1])}, "y: node 2: got -7, expected a class"),
        ({"y": torch.tensor([0, 1, float("inf"), 1])}, "y: node 2: got inf"),
        ({"class_names": ["a"]}, "class_names: got 1 names, but y has class 1"),
        ({"class_names": ["a", "a"]}, "class_names: got duplicate names"),
        (
            {"train_mask": torch.ones(3).bool()},
            "train_mask: got shape (3,), expected (4,) or (4, ",
        ),
        ({"train_mask": torch.ones(4, 0).bool()}, "train_mask: got shape (4, 0)"),
        ({"train_mask": torch.tensor([0, 1, 2, 3])}, "train_mask: expected only boolean values"),
        (
            {"train_mask": torch.ones(4).bool(), "val_mask": torch.ones(4, 2).bool()},
            "masks: got different shapes: train_mask (4,), val_mask (4, 2)",
        ),
        ({"node_ids": ["a"]}, "node_ids: got 1 values, expected 4"),
        ({"node_ids": ["a", "b", "c", "a"]}, "node_ids: got duplicate ids"),
        ({"feature_names": ["a"]}, "feature_names: got 1 values, expected 2"),
    ],
)
def test_mistakes(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as error:
        files.normalize(graph(**changes), "my graph")
    assert str(error.value).startswith("my graph: ")
    assert message in str(error.value)


def test_not_a_graph() -> None:
    with pytest.raises(InputError, match="got HeteroData, expected a PyG Data"):
        files.normalize(HeteroData())
    with pytest.raises(InputError, match="unknown number of nodes"):
        files.normalize(Data(edge_index=PAIR))


def test_info_counts_labeled_edges_only() -> None:
    data = files.normalize(graph(edge_index=torch.tensor([[0, 0, 1, 2], [1, 2, 2, 3]])))
    assert files.info(data) == {
        "nodes": 4,
        "edges": 4,
        "directed": False,
        "features": 2,
        "classes": 2,
        "homophily": pytest.approx(1 / 3),
        "labelled": 3,
    }
    assert files.info(files.normalize(graph(y=None)))["homophily"] is None


def test_from_networkx() -> None:
    g = nx.karate_club_graph()
    for node in g:
        g.nodes[node]["degree"] = g.degree[node]
    g.nodes[5]["club"] = None
    data = files.from_networkx(g, label="club", name="karate")
    assert data.num_nodes == 34
    assert data.num_edges == 2 * 78
    assert data.node_ids == list(range(34))
    assert data.feature_names == ["degree"]
    assert data.x[:, 0].tolist() == [g.degree[n] for n in g]
    assert data.class_names == ["Mr. Hi", "Officer"]
    assert data.y[5] == -1
    assert all(data.class_names[data.y[n]] == g.nodes[n]["club"] for n in g if n != 5)
    assert data.name == "karate"


def test_from_networkx_with_lists_splits_and_other_nodes() -> None:
    g = nx.MultiDiGraph()
    g.add_node(("a", 1), f=np.array([1.0, 2.0]), split="train", label=3)
    g.add_node("b", f=torch.tensor([3.0, 4.0]), label="x")
    g.add_node(7, f=[5, 6], split="test", extra="ignored")
    g.add_edges_from([(("a", 1), "b"), (("a", 1), "b"), (7, 7), ("b", 7)])
    data = files.from_networkx(g, features=["f"])
    assert data.node_ids == ["('a', 1)", "b", "7"]
    assert data.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert data.train_mask.tolist() == [True, False, False]
    assert data.class_names == ["3", "x"]
    assert data.y.tolist() == [0, 1, -1]


def test_mistakes_in_networkx(caplog: pytest.LogCaptureFixture) -> None:
    g = nx.path_graph(3)
    assert files.from_networkx(g).x.tolist() == [[1], [1], [1]]
    assert "no features" in caplog.text
    g.nodes[0]["f"] = 1.0
    assert files.from_networkx(g).table_cells.tolist() == [[0], [-1], [-1]]
    nx.set_node_attributes(g, {1: "red", 2: 2.0}, "f")
    with pytest.raises(InputError, match="node 1, column 'f': got 'red', expected a number"):
        files.from_networkx(g)
    nx.set_node_attributes(g, 1, "f")
    with pytest.raises(InputError, match="no node has the attribute 'g'"):
        files.from_networkx(g, features=["g"])
    nx.set_node_attributes(g, 1, "id")
    with pytest.raises(InputError, match=r"'id' cannot be a feature.*features=\[\.\.\.\]"):
        files.from_networkx(g)
    with pytest.raises(InputError, match="column 'split': got '1', expected train, val, test"):
        files.from_networkx(g, split="f", features=["f"])
    g = nx.Graph([(1, "1")])
    with pytest.raises(InputError, match="node '1', column 'id': got '1', expected a unique id"):
        files.from_networkx(g)
    with pytest.raises(InputError, match="empty graph"):
        files.from_networkx(nx.Graph())


@pytest.mark.parametrize(("nodes", "edges"), [(5, 40), (300, 900)])
def test_edges_are_those_of_pyg(nodes, edges):
    pairs = torch.randint(nodes, (2, edges), generator=torch.Generator().manual_seed(0))
    out = files.normalize(Data(edge_index=pairs, x=torch.ones(nodes, 1)))
    wanted = to_undirected(remove_self_loops(pairs)[0], num_nodes=nodes)
    assert torch.equal(out.edge_index, wanted)
