"""Model files: which graphs a model may be used on, and files of version 0.1."""

import json
import logging
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch_geometric.data import Data

from dgt import InputError, NodeClassifier
from dgt.storage.tensors import read_tensors, write_tensors
from tests.small import QUICK, block_graph

SHORT = {**QUICK, "epochs": 2, "model": "dgt"}
ONLY_THIS = [
    {"encoding": "laplacian"},
    {"encoding": "node2vec"},
    {"model": "gt-sparse"},
    {"model": "geom-gcn"},
]


def named(data: Data) -> Data:
    data = data.clone()
    data.node_ids = [f"n{i}" for i in range(data.num_nodes)]
    return data


def with_one_more(data: Data) -> Data:
    """Returns a graph with one more node, joined to node 0."""
    edges = torch.cat([data.edge_index, torch.tensor([[0], [data.num_nodes]])], dim=1)
    x = torch.cat([data.x, data.x[:1]])
    more = Data(x=x, edge_index=edges, name="larger")
    if "node_ids" in data:
        more.node_ids = [*data.node_ids, "new"]
    return more


def without_an_edge(data: Data) -> Data:
    data = data.clone()
    data.edge_index = data.edge_index[:, 1:]
    data.name = "changed"
    return data


@pytest.mark.parametrize("ids", [False, True])
def test_katz_needs_a_graph_that_contains_the_training_graph(ids: bool, tmp_path: Path) -> None:
    data, other = block_graph(), block_graph(seed=1)  # both number their nodes from 0
    if ids:
        data, other = named(data), named(other)
    fitted = NodeClassifier(**SHORT).fit(data)
    fitted.save(tmp_path)
    for classifier in (fitted, NodeClassifier.load(tmp_path)):
        assert torch.equal(classifier.predict_proba(data), fitted.predict_proba())
        assert classifier.predict(with_one_more(data)).shape == (91,)
        for wrong in (other, without_an_edge(data), block_graph(nodes=60)):
            with pytest.raises(InputError, match=r"does not contain .* encoding that carries over"):
                classifier.predict(wrong)


@pytest.mark.parametrize("settings", ONLY_THIS)
def test_other_encodings_need_the_training_graph(settings: dict[str, str], tmp_path: Path) -> None:
    data = block_graph()
    fitted = NodeClassifier(**SHORT | settings).fit(data)
    fitted.save(tmp_path)
    for classifier in (fitted, NodeClassifier.load(tmp_path)):
        assert torch.equal(classifier.predict_proba(data), fitted.predict_proba())
        for wrong in (with_one_more(data), without_an_edge(data), named(data), block_graph(seed=1)):
            with pytest.raises(InputError, match=r"not the graph .* train a model on this graph"):
                classifier.predict(wrong)


def as_version_0_1(folder: Path, **facts: object) -> None:
    """Rewrites a model file without the facts that version 0.1 did not store."""
    path = folder / "model.safetensors"
    with safe_open(path, framework="pt") as file:
        stored = json.loads(file.metadata()["dgt"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name in ("graph.node_keys", "digest"):
        tensors.pop(name, None)
    del stored["num_nodes"]
    save_file(tensors, path, {"dgt": json.dumps({**stored, "dgt_version": "0.1.0", **facts})})


@pytest.mark.parametrize("encoding", ["katz", "laplacian"])
def test_a_model_of_version_0_1_warns(encoding: str, tmp_path: Path, caplog) -> None:
    data = named(block_graph())
    fitted = NodeClassifier(**SHORT, encoding=encoding).fit(data)
    fitted.save(tmp_path)
    as_version_0_1(tmp_path, edges=None)
    loaded = NodeClassifier.load(tmp_path)
    with caplog.at_level(logging.WARNING, "dgt"):
        assert torch.equal(loaded.predict_proba(data), fitted.predict_proba())
        assert loaded.predict(without_an_edge(data)).shape == (90,)
    assert "changed: cannot be compared with the graph that the model was trained" in caplog.text
    other = block_graph()  # shares no id
    if encoding == "katz":
        with pytest.raises(InputError, match="shares no node id"):
            loaded.predict(other)


def test_node2vec_of_version_0_1_is_checked_by_its_edges(tmp_path: Path, caplog) -> None:
    data = block_graph()
    fitted = NodeClassifier(**SHORT, encoding="node2vec").fit(data)
    fitted.save(tmp_path)
    as_version_0_1(tmp_path)
    loaded = NodeClassifier.load(tmp_path)
    assert torch.equal(loaded.predict_proba(data), fitted.predict_proba())
    assert "cannot be compared" not in caplog.text
    with pytest.raises(InputError, match="not the graph that the model was trained on"):
        loaded.predict(without_an_edge(data))


def test_a_model_without_an_encoding_is_used_on_every_graph(tmp_path: Path, caplog) -> None:
    NodeClassifier(**SHORT, encoding="none").fit(named(block_graph())).save(tmp_path)
    assert NodeClassifier.load(tmp_path).predict(block_graph(seed=1)).shape == (90,)
    assert "cannot be compared" not in caplog.text


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("digest", [False, True])
def test_weights_that_are_not_finite_are_refused(bad: float, digest: bool, tmp_path: Path) -> None:
    NodeClassifier(**SHORT).fit(block_graph()).save(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors, metadata = read_tensors(path)
    name = sorted(tensors)[3]
    tensors[name].view(-1)[0] = bad
    (write_tensors if digest else save_file_at)(path, tensors, metadata)
    with pytest.raises(InputError, match=rf"model\.safetensors: {name}: holds NaN or infinite"):
        NodeClassifier.load(tmp_path)


def save_file_at(path: Path, tensors: dict[str, torch.Tensor], metadata: dict[str, str]) -> None:
    save_file(tensors, path, metadata)


def test_a_flipped_bit_is_refused(tmp_path: Path) -> None:
    NodeClassifier(**SHORT).fit(block_graph()).save(tmp_path)
    path = tmp_path / "model.safetensors"
    whole = path.read_bytes()
    for place in (len(whole) - 1, len(whole) - 3000, whole.index(b'class_names\\": [\\"0') + 18):
        damaged = bytearray(whole)
        damaged[place] ^= 2
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"model\.safetensors: damaged"):
            NodeClassifier.load(tmp_path)
