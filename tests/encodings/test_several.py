"""Several encodings at once, and those that follow links."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dgt import NodeClassifier
from dgt.config import Config, EncodingConfig
from dgt.encodings import choose_anchors, katz
from dgt.errors import InputError
from dgt.prepare import carries_over, precompute, prepare
from tests.encodings.test_encodings import dense_katz
from tests.sequences.graphs import graphs
from tests.small import block_graph

SMALL = {"model": "dgt", "hidden_channels": 8, "heads": 2, "keys": 2, "length": 4, "epochs": 3}


def links_graph(nodes: int = 60, seed: int = 0) -> Data:
    """A graph of two classes with random links and no reciprocity in most of them."""
    data = block_graph(nodes)
    edges = torch.from_numpy(np.random.default_rng(seed).integers(0, nodes, (2, 4 * nodes)))
    data.edge_index = data.directed_edge_index = edges
    return data


def dense_links(data: Data) -> np.ndarray:
    A = np.zeros((data.num_nodes, data.num_nodes))
    for a, b in data.edge_index.T.tolist():
        A[a, b] = a != b
    return A


@settings(deadline=None)
@given(data=graphs(), order=st.integers(1, 3), turned=st.booleans())
def test_katz_columns_count_paths_along_links(data: Data, order: int, turned: bool) -> None:
    A = dense_links(data)
    anchors = torch.arange(data.num_nodes)
    result = katz(
        data.edge_index,
        data.num_nodes,
        order=order,
        anchors=anchors,
        direction="in" if turned else "out",
    )
    truth = dense_katz(A.T if turned else A, order, 0.5, "l2", anchors.tolist())
    np.testing.assert_allclose(result.to_dense().numpy(), truth, rtol=1e-5, atol=1e-12)


def test_columns_are_side_by_side_with_known_widths() -> None:
    data = links_graph()
    names = ["katz-out", "laplacian", "katz-in"]
    config = Config.of("dgt").replace(encoding=names, laplacian_columns=5)
    made = prepare(data, config)
    assert made.encoding_widths == (60, 5, 60)
    columns = made["encoding"].to_dense()
    alone = [prepare(data, config.replace(encoding=name))["encoding"].to_dense() for name in names]
    assert torch.equal(columns, torch.cat(alone, dim=1))
    one = prepare(data, Config.of("dgt"))
    assert one.encoding_widths == (60,)
    assert prepare(data, Config.of("dgt").replace(encoding="none")).encoding_widths == (0,)


def test_a_single_name_is_what_it_was() -> None:
    config = Config.of("dgt").replace(encoding=["katz"])
    assert config.encoding.encoding == "katz"
    assert config == Config.of("dgt")
    several = config.replace(encoding=("katz-out", "katz-in"))
    assert 'encoding = ["katz-out", "katz-in"]' in several.to_toml()
    assert Config.from_dict(several.to_dict()) == several
    for wrong, message in (
        (["katz", "katz"], "expected different encodings"),
        (["none", "katz"], "expected none alone"),
        ([], "expected at least one encoding"),
        (["katz", "katzz"], "unknown encoding 'katzz'"),
    ):
        with pytest.raises(InputError, match=message):
            EncodingConfig(encoding=wrong)


def test_the_strictest_encoding_says_what_carries_over() -> None:
    def of(*names: str) -> str:
        return carries_over(Config.of("dgt").replace(encoding=names))

    assert of("none") == "always"
    assert of("katz-out", "katz-in") == "anchors"
    assert of("katz-out", "laplacian") == "edges"


def test_a_graph_without_direction_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    data = block_graph(60)
    for setting in ({"encoding": "katz-out"}, {"criteria": ["bfs", "ppr-out"]}):
        model = NodeClassifier(**SMALL, **setting)
        with pytest.raises(InputError, match=r"(encoding katz|criterion ppr)-out needs directed"):
            model.fit(data, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_model_along_links_is_saved_and_used_on_graphs_that_contain_its_own(
    tmp_path: Path,
) -> None:
    data = links_graph()
    settings = {**SMALL, "criteria": ["bfs-out", "ppr-in"], "encoding": ["katz-out", "katz-in"]}
    model = NodeClassifier(**settings).fit(data, out=tmp_path / "run")
    assert model.facts_.encoding_widths == [60, 60]
    assert model.config_.data.directed is True
    again = NodeClassifier.load(tmp_path / "run")
    assert torch.equal(again.predict(data), model.predict())

    more = links_graph(61)
    more.x[:60], more.y[:60] = data.x, data.y
    new = torch.tensor([[60, 3], [5, 60]])
    more.edge_index = more.directed_edge_index = torch.cat([data.edge_index, new], dim=1)
    assert len(again.predict(more)) == 61

    turned = data.clone()
    turned.directed_edge_index = data.edge_index.flip(0)
    with pytest.raises(InputError, match="does not contain the graph"):
        again.predict(turned)
    undirected = data.clone()
    del undirected.directed_edge_index
    undirected.edge_index = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    with pytest.raises(InputError, match="all edges are in both directions"):
        again.predict(undirected)
    # A model that does not read direction does not mind.
    plain = NodeClassifier(**SMALL).fit(data)
    assert torch.equal(plain.predict(turned), plain.predict())


@pytest.mark.parametrize("sizes", [{"chunk_size": 16}, {"batch_size": 8}])
def test_chunks_and_batches(sizes: dict[str, int]) -> None:
    data = links_graph()
    settings = {**SMALL, "criteria": ["bfs-in"], "encoding": ["katz-out", "katz-in"], "epochs": 1}
    model = NodeClassifier(**settings, **sizes).fit(data)
    found = model.inspect()
    with torch.no_grad():
        whole = model.model_(**prepare(found.data, model.config, torch.arange(60)))
    torch.testing.assert_close(found.logits, whole, rtol=1e-4, atol=1e-5)


def test_prepared_rows_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DGT_CACHE", str(tmp_path))
    data = links_graph()
    config = Config.of("dgt").replace(
        encoding=["katz", "katz-out", "katz-in"], criteria=["bfs-out"]
    )
    before = prepare(data, config)["encoding"]
    result = precompute(data, config, progress=False)
    assert result["segments"] == 4
    assert torch.equal(prepare(data, config)["encoding"].to_dense(), before.to_dense())
    anchors = choose_anchors(data.edge_index, 60)
    assert anchors.tolist() == list(range(60))
