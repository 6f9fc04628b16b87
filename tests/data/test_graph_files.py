"""GraphML, GEXF and MatrixMarket files, compared with NetworkX and SciPy."""

import re
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import scipy.io
import scipy.sparse
import torch

from dgt import NodeClassifier, load
from dgt.cli import main
from dgt.config import DataConfig
from dgt.data.direction import directed_adjacency
from dgt.data.edge_tables import edge_weights
from dgt.data.matrices import adjacency
from dgt.errors import InputError

WRITE: dict[str, Callable[..., None]] = {"graphml": nx.write_graphml, "gexf": nx.write_gexf}


def people(directed: bool = False, nodes: int = 40, seed: int = 0) -> nx.Graph:
    """Two groups with a number, a date, a truth value and a missing cell."""
    graph = nx.planted_partition_graph(2, nodes // 2, 0.4, 0.05, seed=seed, directed=directed)
    made = (nx.DiGraph if directed else nx.Graph)()
    rng = np.random.default_rng(seed)
    for node in graph:
        own = {
            "group": "ab"[2 * node // nodes],
            "age": int(rng.integers(20, 60)),
            "new": node % 3 == 0,
        }
        if node != 5:
            own["since"] = f"2024-0{1 + node % 9}-11"
        made.add_node(f"p{node}", **own)
    made.add_edges_from((f"p{u}", f"p{v}") for u, v in graph.edges)
    return made


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("form", WRITE)
def test_xml_is_read_like_the_graph_in_memory(tmp_path: Path, form: str, directed: bool) -> None:
    graph = people(directed)
    for number, (_, _, edge) in enumerate(graph.edges(data=True)):
        edge["weight"] = 0.5 + number % 7
    path = tmp_path / f"people.{form}"
    WRITE[form](graph, path)
    data = load(str(path), settings=DataConfig(label="group"))
    assert data.node_ids == list(graph.nodes)
    assert [data.class_names[c] for c in data.y] == [graph.nodes[n]["group"] for n in graph]
    assert data.table.features() == ["age", "new", "since"]
    both = nx.to_scipy_sparse_array(graph.to_undirected(), weight=None).toarray()
    assert np.array_equal(adjacency(data.edge_index, data.num_nodes).toarray(), both)
    assert ("directed_edge_index" in data) == directed
    if directed:
        out = nx.to_scipy_sparse_array(graph, weight=None).toarray()
        assert np.array_equal(directed_adjacency(data).toarray(), out)
    else:
        found = adjacency(data.edge_index, data.num_nodes, edge_weights(data)).toarray()
        truth = nx.to_scipy_sparse_array(graph).toarray()
        assert np.allclose(found / found.max(), truth / truth.max())


@pytest.mark.parametrize("form", WRITE)
def test_xml_goes_through_the_recipe(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"people.{form}"
    WRITE[form](people(), path)
    settings = {"label": "group", "epochs": 3, "length": 4}
    run = tmp_path / "run"
    flags = [f"--{name}={value}" for name, value in settings.items()]
    assert main(["train", str(path), "--out", str(run), "--quiet", *flags]) == 0
    kinds = {c["column"]: c["kind"] for c in NodeClassifier.load(run).facts_.recipe or ()}
    assert kinds == {"age": "number", "new": "boolean", "since": "date"}


def test_names_in_gexf_are_no_classes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "people.gexf"
    nx.write_gexf(people(), path)
    assert load(str(path)).class_names == []
    assert "taken for its name" in caplog.text
    graph = people()
    for node in graph:
        graph.nodes[node]["label"] = graph.nodes[node].pop("group")
    nx.write_gexf(graph, path)
    assert load(str(path)).class_names == ["a", "b"]


def test_an_attribute_may_be_named_id(tmp_path: Path) -> None:
    graph = people()
    nx.set_node_attributes(graph, {n: i for i, n in enumerate(graph)}, "id")
    nx.write_graphml(graph, tmp_path / "people.graphml")
    data = load(str(tmp_path / "people.graphml"), settings=DataConfig(label="group"))
    assert "attribute id" in data.table.features()
    assert data.node_ids == list(graph.nodes)


BOMB = "<!DOCTYPE z [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {y} '{10 * f'&{x};'}'>" for x, y in zip("abcdefgh", "bcdefghi", strict=True)
)
SPACE = "http://graphml.graphdrawing.org/xmlns"
EDGE = '<node id="a"/><node id="b"/><edge source="a" target="b"/>'
GRAPH = f'<graph edgedefault="undirected">{EDGE}</graph>'


DIRECTED = "<graph edgedefault='directed'>"
NUMBER = "<key id='k' for='node' attr.name='n' attr.type='int'/>"
WEIGHT = "<key id='w' for='edge' attr.name='weight' attr.type='double'/>"
WORD = GRAPH.replace('<node id="a"/>', '<node id="a"><data key="k">x</data></node>')
NEGATIVE = GRAPH.replace('target="b"/>', 'target="b"><data key="w">-1</data></edge>')


def graphml(content: str, before: str = "") -> str:
    return f"{before}<graphml xmlns='{SPACE}'>{content}</graphml>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "no element found"),
        ("source,target\n1,2\n", "syntax error: line 1"),
        (f"<graphml xmlns='{SPACE}'>", "no element found"),
        (graphml(""), "got 0 graphs, expected one"),
        (graphml(GRAPH + GRAPH), "got 2 graphs, the second one in line 1"),
        (graphml(f"{GRAPH}&i;", f"{BOMB}]>"), "line 1: got a declaration"),
        (graphml(GRAPH, "<!DOCTYPE g SYSTEM 'file:///etc/passwd'>"), "got a declaration"),
        (graphml(f"{DIRECTED}</graph>"), "no nodes"),
        (
            graphml(GRAPH.replace("target=", "end=")),
            "line 1: got an element 'edge' without the attr",
        ),
        (graphml(f"{DIRECTED}<node id='a'/></graph>"), "empty graph"),
        (graphml(GRAPH.replace("<edge", "<hyperedge/><edge")), "hyper"),
        (graphml(NUMBER + WORD), "not a readable GraphML file: invalid literal"),
        (graphml(WEIGHT + NEGATIVE), "edge 'a' to 'b', column 'weight': got -1.0, expected a pos"),
    ],
)
def test_malformed_xml_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "graph.graphml"
    path.write_text(content)
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        load(str(path))
    assert str(path) in str(refused.value)


def test_entities_in_utf16_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "graph.gexf"
    path.write_bytes(
        f"<?xml version='1.0' encoding='utf-16'?>{BOMB}]><gexf>&i;</gexf>".encode("utf-16")
    )
    with pytest.raises(InputError, match="got a declaration"):
        load(str(path))


@pytest.mark.parametrize("symmetry", ["symmetric", "general"])
@pytest.mark.parametrize("field", ["real", "pattern"])
def test_matrix_market_round_trip(tmp_path: Path, symmetry: str, field: str) -> None:
    matrix = scipy.sparse.random_array((12, 12), density=0.2, rng=np.random.default_rng(1))
    matrix = matrix + matrix.T if symmetry == "symmetric" else matrix
    path = tmp_path / "graph.mtx"
    scipy.io.mmwrite(path, matrix.tocoo(), field=field, symmetry=symmetry)
    data = load(str(path))
    matrix = matrix.toarray() * (1 - np.eye(12))
    assert data.node_ids == list(range(1, 13))
    assert np.array_equal(
        adjacency(data.edge_index, 12).toarray(), ((matrix + matrix.T) > 0).astype(float)
    )
    assert ("directed_edge_index" in data) == (symmetry == "general")
    if symmetry == "general":
        assert np.array_equal(directed_adjacency(data).toarray(), (matrix > 0).astype(float))
    if field == "real" and symmetry == "symmetric":
        found = adjacency(data.edge_index, 12, edge_weights(data)).toarray()
        assert np.allclose(found / found.max(), matrix / matrix.max())


def test_matrix_market_as_an_edge_table(tmp_path: Path) -> None:
    ring = np.arange(12)
    matrix = scipy.sparse.coo_array((np.ones(12), (ring, (ring + 1) % 12)), shape=(12, 12))
    scipy.io.mmwrite(tmp_path / "edges.mtx", matrix, field="pattern")
    rows = "".join(f"{n},{'ab'[n % 2]},{n * 7 % 5}\n" for n in range(1, 13))
    (tmp_path / "nodes.csv").write_text(f"id,label,size\n{rows}")
    data = load(str(tmp_path))
    assert data.edge_index.size(1) == 24
    assert data.class_names == ["a", "b"]
    assert torch.equal(data.edge_index[1][data.edge_index[0] == 0], torch.tensor([1, 11]))


HEADER = "%%MatrixMarket matrix coordinate"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a readable MatrixMarket file"),
        ("1 2\n", "not a readable MatrixMarket file"),
        (f"{HEADER} real general\n2 3 1\n1 2 1.0\n", "shape (2, 3), expected"),
        ("%%MatrixMarket matrix array real general\n1 1\n1.0\n", "got array format"),
        (f"{HEADER} complex general\n2 2 1\n1 2 1.0 2.0\n", "got complex values"),
        (f"{HEADER} real skew-symmetric\n2 2 1\n2 1 1.0\n", "got a skew-symmetric matrix"),
        (f"{HEADER} real general\n2 2 2\n1 2 1.0\n", "not a readable MatrixMarket file"),
        (f"{HEADER} real general\n2 2 1\n1 5 1.0\n", "not a readable MatrixMarket file"),
        (f"{HEADER} real general\n2 2 1\n1 2 x\n", "not a readable MatrixMarket file"),
        (f"{HEADER} real general\n2 2 1\n1 2 -3\n", "entry 1, column 'weight': got -3.0"),
        (f"{HEADER} pattern general\n2 2 0\n", "empty graph"),
        (f"{HEADER} pattern general\n2000000000 2000000000 9000000000000\n1 2\n", "its content"),
    ],
)  # fmt: skip
def test_malformed_matrices_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "graph.mtx"
    path.write_text(content)
    with pytest.raises(InputError, match=re.escape(message)) as refused:
        load(str(path))
    assert str(path) in str(refused.value)


def test_info_shows_what_becomes_of_attributes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nx.write_graphml(people(), tmp_path / "people.graphml")
    assert main(["info", str(tmp_path / "people.graphml"), "--label", "group"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"since\s.*date", shown)
    assert re.search(r"group\s.*used as label", shown)
