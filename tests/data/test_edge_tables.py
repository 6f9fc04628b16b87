"""Several edge tables and weights of edges."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from dgt import NodeClassifier
from dgt.cli import main
from dgt.config import DataConfig, EncodingConfig, SequenceConfig
from dgt.data import files, load
from dgt.data.edge_tables import edge_weights, of_table, table_names
from dgt.encodings import katz
from dgt.encodings.katz import KATZ
from dgt.errors import InputError
from dgt.sequences.make import make_sequences
from dgt.storage import segments


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(**texts: str) -> Path:
        for name, text in texts.items():
            (tmp_path / f"{name.replace('_', '.')}.csv").write_text(text)
        return tmp_path

    return written


NODES = "id,label\na,x\nb,y\nc,x\nd,y\n"


def test_several_tables(write: Callable[..., Path]) -> None:
    path = write(
        nodes=NODES,
        edges_follows="src,dst\na,b\nb,a\nb,c\n",
        edges_pays="from,to,weight\nc,b,2\nb,c,3\nc,d,0.5\nd,d,9\n",
    )
    data = files.normalize(files.read(path))
    assert table_names(data) == ["follows", "pays"]
    assert data.edge_index.tolist() == [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    assert data.edge_weights.tolist() == [[1, 0], [1, 0], [1, 5], [1, 5], [0, 0.5], [0, 0.5]]
    follows = of_table(data, "follows")
    assert follows.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert edge_weights(follows) is None
    np.testing.assert_allclose(
        edge_weights(of_table(data, "pays")), np.array([5, 5, 0.5, 0.5]) / 2.75
    )
    with pytest.raises(InputError, match=r"no edge table 'pay'; did you mean 'pays'\?"):
        of_table(data, "pay")


def test_tables_without_weights_are_not_weighted(write: Callable[..., Path]) -> None:
    data = files.read(write(nodes=NODES, edges_x="source,target\na,b\na,b\n", edges_y="u,v\nb,c\n"))
    assert edge_weights(data) is None
    data = files.read(write(nodes=NODES, edges_x="source,target\na,b\nb,c\n", edges_y="u,v\nb,c\n"))
    assert edge_weights(data) is None


def test_sequences_and_katz_per_table(write: Callable[..., Path]) -> None:
    rng = np.random.default_rng(0)
    tables = {}
    for name in ("p", "q"):
        pairs = rng.integers(0, 12, (20, 2))
        tables[f"edges_{name}"] = "source,target\n" + "".join(f"{a},{b}\n" for a, b in pairs)
    nodes = "id\n" + "".join(f"{i}\n" for i in range(12))
    data = files.read(write(nodes=nodes, **tables))
    settings = SequenceConfig(length=6)
    for criterion in ("bfs", "ppr"):
        own = make_sequences(data, [f"{criterion}:p", f"{criterion}:q", criterion], settings)
        for number, name in enumerate(("p", "q")):
            alone = make_sequences(of_table(data, name), [criterion], settings)
            assert torch.equal(own[number], alone[0])
        assert not torch.equal(own[0], own[1])
    encoding = KATZ.columns(data, EncodingConfig(), None).to_dense()
    parts = [
        katz(of_table(data, n).edge_index, 12, anchors=torch.arange(12)).to_dense() for n in "pq"
    ]
    assert torch.equal(encoding, torch.cat(parts, dim=1))
    with pytest.raises(InputError, match="no edge table 'r'"):
        make_sequences(data, ["bfs:r"], settings)


def weighted_graph(write: Callable[..., Path], n: int = 12) -> tuple[Path, nx.Graph]:
    graph = nx.connected_watts_strogatz_graph(n, 4, 0.5, seed=0)
    rng = np.random.default_rng(0)
    for u, v in graph.edges:
        graph[u][v]["weight"] = float(np.round(rng.uniform(0.05, 20), 2))
    rows = "".join(f"{u},{v},{w['weight']}\n" for u, v, w in graph.edges(data=True))
    nodes = "id\n" + "".join(f"{i}\n" for i in range(n))
    return write(nodes=nodes, edges="source,target,weight\n" + rows), graph


def test_weighted_pagerank_equals_networkx(write: Callable[..., Path]) -> None:
    path, graph = weighted_graph(write)
    data = files.read(path)
    settings = SequenceConfig(length=12, ppr_tolerance=1e-12)
    (found,) = make_sequences(data, ["ppr"], settings).numpy()
    for base in range(12):
        exact = nx.pagerank(graph, alpha=0.85, personalization={base: 1}, tol=1e-14, max_iter=9999)
        others = sorted((v for v in graph if v != base), key=lambda v: -exact[v])
        assert found[base].tolist() == [base, *others]
    plain = files.read(path)
    del plain.edge_weights
    assert not np.array_equal(found, make_sequences(plain, ["ppr"], settings)[0].numpy())


def test_weighted_katz_and_convolutions(write: Callable[..., Path]) -> None:
    from dgt.baselines import structures

    path, graph = weighted_graph(write)
    data = files.read(path)
    A = nx.to_numpy_array(graph, nodelist=range(12))
    A /= A[A > 0].mean()
    weights = edge_weights(data)
    settings = EncodingConfig(katz_order=2, katz_beta=0.5, katz_scaling="none")
    np.testing.assert_allclose(
        KATZ.columns(data, settings, None).to_dense(), A + 0.5 * A @ A, rtol=1e-5
    )
    loops = A + np.eye(12)
    scale = 1 / np.sqrt(loops.sum(axis=1))
    made = structures.normalized(data.edge_index, 12, weights=weights).to_dense()
    np.testing.assert_allclose(made, scale[:, None] * loops * scale, rtol=1e-5)
    made = structures.mean(data.edge_index, 12, weights=weights).to_dense()
    np.testing.assert_allclose(made, A / A.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("weight", ["0", "-1", "", "x", "nan", "inf", "1e300"])
def test_bad_weights(write: Callable[..., Path], weight: str) -> None:
    path = write(nodes=NODES, edges=f"source,target,weight\na,b,1\nb,c,{weight}\n")
    with pytest.raises(InputError, match=r"row 3, column 'weight': .*expected a positive number"):
        files.read(path)


def two_types(folder: Path, seed: int = 0, n: int = 240) -> tuple[Path, Path]:
    """Writes a graph with a table of telling and one of random edges, and once with both merged."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    telling, random = [], []
    while len(telling) < 2 * n:
        a, b = rng.integers(0, n, 2)
        if y[a] == y[b] and a != b:
            telling.append((a, b))
    while len(random) < 8 * n:
        a, b = rng.integers(0, n, 2)
        if a != b:
            random.append((a, b))
    rows = [f"n{i},{'rgb'[c]},{rng.normal():.3f}" for i, c in enumerate(y)]
    nodes = "id,label,noise\n" + "\n".join(rows) + "\n"
    apart, merged = folder / "apart", folder / "merged"
    for path, tables in (
        (apart, {"edges.pays": telling, "edges.follows": random}),
        (merged, {"edges": telling + random}),
    ):
        path.mkdir(parents=True)
        (path / "nodes.csv").write_text(nodes)
        for name, pairs in tables.items():
            text = "source,target\n" + "".join(f"n{a},n{b}\n" for a, b in pairs)
            (path / f"{name}.csv").write_text(text)
    return apart, merged


def test_edge_types_apart_are_better_than_merged(tmp_path: Path) -> None:
    """Only one of two edge tables carries the signal."""
    scores: dict[str, list[float]] = {"apart": [], "merged": []}
    settings = {"epochs": 60, "patience": 60, "hidden_channels": 32}
    for path in two_types(tmp_path):
        for seed in (0, 1):
            classifier = NodeClassifier(seed=seed, **settings).fit(load(str(path)))
            scores[path.name].append(classifier.score())
    assert np.mean(scores["apart"]) >= np.mean(scores["merged"]) + 0.05


def test_the_default_sorts_by_each_table(tmp_path: Path) -> None:
    apart, merged = two_types(tmp_path, n=60)
    quick = {"epochs": 2, "length": 4, "hidden_channels": 8}
    classifier = NodeClassifier(model="dgt", **quick).fit(load(str(apart)), out=tmp_path / "run")
    expected = ("bfs:follows", "bfs:pays", "ppr:follows", "ppr:pays", "similarity")
    assert classifier.config_.criteria == expected
    again = NodeClassifier.load(tmp_path / "run")
    data = load(str(apart))
    assert torch.equal(again.predict_proba(data), classifier.predict_proba(data))
    with pytest.raises(InputError, match="no edge table 'follows', which has a single edge table"):
        again.predict(load(str(merged)))


def test_edges_to_unknown_nodes(
    write: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    path = write(nodes="id,label,age\na,x,1\nb,y,2\n", edges="source,target\na,b\nb,z\nz,y\n")
    with pytest.raises(InputError, match=r"row 4, column 'source': got 'z', .*-nodes drop"):
        files.read(path)
    with caplog.at_level(logging.WARNING):
        data = files.read(path, DataConfig(unknown_nodes="drop"))
    assert "leaving out 2 edges to nodes that are not in nodes.csv" in caplog.text
    assert data.num_edges == 2
    data = files.read(path, DataConfig(unknown_nodes="add"))
    assert "adding 2 nodes that only the edges name" in caplog.text
    assert data.node_ids == ["a", "b", "y", "z"]
    assert data.y.tolist() == [0, 1, -1, -1]
    assert data.table_cells[:, -1].tolist() == [0, 1, -1, -1]


def test_a_graph_without_nodes(write: Callable[..., Path]) -> None:
    data = files.read(write(edges="source,target\n10,9\n9,2\n"))
    assert data.node_ids == [10, 2, 9]
    assert data.num_edges == 4
    assert data.x.tolist() == [[1], [1], [1]]
    with pytest.raises(InputError, match="found 0 classes: add a table of nodes"):
        NodeClassifier().fit(data)


def test_other_files_are_named(
    write: Callable[..., Path], caplog: pytest.LogCaptureFixture
) -> None:
    path = write(nodes=NODES, edges="source,target\na,b\n", readme="x", nodes_old="x")
    (path / ".hidden").write_text("")
    files.read(path)
    assert "ignoring nodes.old.csv, readme.csv" in caplog.text
    assert "hidden" not in caplog.text


@pytest.mark.parametrize("folder", [True, False])
def test_parquet_in_parts(tmp_path: Path, folder: bool) -> None:
    if folder:
        (tmp_path / "nodes.parquet").mkdir()
    for part in range(12):
        name = f"nodes.parquet/part-{part}.parquet" if folder else f"nodes.part-{part}.parquet"
        pq.write_table(pa.table({"id": [f"n{part}"], "age": [part]}), tmp_path / name)
    pq.write_table(pa.table({"source": ["n0"], "target": ["n11"]}), tmp_path / "edges.parquet")
    data = files.read(tmp_path)
    assert data.node_ids == [f"n{i}" for i in range(12)]
    assert data.x[:, 0].tolist() == list(range(12))


def test_prepare_makes_what_training_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    apart, _ = two_types(tmp_path, n=60)
    monkeypatch.setenv("DGT_CACHE", str(tmp_path / "cache"))
    assert main(["prepare", str(apart), "--model=dgt", "--length=4", "--json", "--quiet"]) == 0
    before = {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert len(list((tmp_path / "cache" / "katz").iterdir())) == 2  # a table each
    monkeypatch.setattr(segments, "through", _only_read(segments.through))
    classifier = NodeClassifier(model="dgt", length=4, epochs=1).fit(load(str(apart)))
    assert len(classifier.config_.criteria) == 5
    after = {path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()}
    assert before == after


def _only_read(through: Callable[..., Any]) -> Callable[..., Any]:
    def checked(rows: segments.CachedRows, folder: Path | None, *rest: Any, **more: Any) -> Any:
        assert folder is not None
        assert not rows.missing(folder), f"{rows.name} was not prepared"
        return through(rows, folder, *rest, **more)

    return checked


def test_settings_stay_as_given(tmp_path: Path) -> None:
    apart, _ = two_types(tmp_path, n=60)
    classifier = NodeClassifier(length=4, epochs=1)
    before = classifier.config
    classifier.fit(load(str(apart)))
    assert classifier.config is before
    assert before.sequences.criteria is None
    classifier.save(tmp_path / "model")
    again = NodeClassifier.load(tmp_path / "model")
    assert again.config == again.config_ == classifier.config_
    assert torch.equal(again.predict(load(str(apart))), classifier.predict())
