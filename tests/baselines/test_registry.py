"""Properties of all models; a new model is covered as soon as it is registered."""

import inspect
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from dgt import InputError, NodeClassifier, models
from dgt.config import MODELS, Config, own_defaults
from dgt.data.labels import label_columns
from dgt.errors import MemoryNeeded
from dgt.experiments.paper import TABLE1
from dgt.models import build, require_memory
from dgt.prepare import prepare
from dgt.training.loop import parameter_groups
from dgt.tune.space import encode, paper_grid
from tests.small import QUICK, block_graph

BASELINES = [model for model in MODELS if model not in ("dgt", "dgt-light", "dgt-plus")]


def built(model: str, data: Data, **settings) -> tuple[nn.Module, dict[str, Tensor | None]]:
    config = Config.of(model).replace(**({"hidden_channels": 16, "length": 8} | settings))
    inputs = prepare(data, config, known=label_columns(data.y, 3))
    columns = 0 if inputs.get("encoding") is None else inputs["encoding"].size(1)
    torch.manual_seed(0)
    return build(config, data.x.size(1), 3, columns), inputs


def test_all_models_of_the_paper_exist():
    assert models.MODELS is MODELS
    assert {model for _, model in TABLE1} <= set(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_one_signature(model: str):
    data = block_graph()
    network, inputs = built(model, data)
    arguments = list(inspect.signature(network.forward).parameters)
    assert set(arguments) == {*models.MODELS[model].inputs, "nodes"}
    assert set(inputs) == set(models.MODELS[model].inputs)
    network.eval()
    logits = network(**inputs)
    assert logits.shape == (90, 3)
    nodes = torch.tensor([5, 0, 77, 5])
    torch.testing.assert_close(network(**inputs, nodes=nodes), logits[nodes])


@pytest.mark.parametrize("model", MODELS)
def test_the_grid_can_be_built(model: str):
    data = block_graph()
    grid = paper_grid(model)
    assert list(grid)[:2] == ["lr", "weight_decay"]
    for name, value in encode(Config.of(model), grid).items():
        assert value in grid[name].choices, name  # a search starts from the defaults
    for point in (0, -1):
        values = {name: each.choices[point] for name, each in grid.items()}
        network, inputs = built(model, data, **values)
        assert network(**inputs).shape == (90, 3)


@pytest.mark.parametrize("model", BASELINES)
def test_one_weight_decay_for_all_weights(model: str):
    settings = {"encoding": "katz"} if model == "transformer" else {}
    network, _ = built(model, block_graph(), **settings)
    config = Config.of(model).train
    (group,) = parameter_groups(network, config)
    assert group["weight_decay"] == config.weight_decay
    assert len(group["params"]) == len(list(network.parameters()))


@pytest.mark.parametrize("model", MODELS)
def test_it_learns(model: str):
    data = block_graph(features=24)
    node = torch.arange(90)
    data.train_mask, data.val_mask, data.test_mask = (
        node < 60,
        (node >= 60) & (node < 75),
        node > 74,
    )
    settings = {"dropout": 0.1, "input_dropout": 0.0, "epochs": 150, "weight_decay": 0.0}
    settings |= {"node_dropout": 0.0, "encoding_dropout": 0.0, "feature_weight_decay": 0.0}
    classifier = NodeClassifier(model=model, **(QUICK | settings | {"patience": 150}))
    assert max(row["train_accuracy"] for row in classifier.fit(data).history_) > 0.95


@pytest.mark.parametrize("model", MODELS)
def test_a_saved_model_is_the_same_model(model: str, tmp_path: Path):
    data = block_graph()
    classifier = NodeClassifier(model=model, **(QUICK | {"epochs": 2})).fit(data)
    classifier.save(tmp_path)
    loaded = NodeClassifier.load(tmp_path)
    assert loaded.config == classifier.config_
    expected = classifier.predict_proba()
    torch.testing.assert_close(loaded.predict_proba(data), expected, rtol=0, atol=0)


@pytest.mark.parametrize("model", MODELS)
def test_the_order_of_nodes_does_not_matter(model: str):
    if model == "geom-gcn":
        pytest.skip("the order breaks ties in the plane and sets the signs of its axes")
    data = block_graph()
    order = torch.randperm(90, generator=torch.Generator().manual_seed(3))
    at = torch.empty_like(order)
    at[order] = torch.arange(90)
    moved = Data(x=data.x[order], edge_index=at[data.edge_index], y=data.y[order])
    settings = {"encoding": "none"} if model.startswith("dgt") else {}
    network, inputs = built(model, data, **settings)
    network.eval()
    config = Config.of(model).replace(hidden_channels=16, length=8, **settings)
    others = prepare(moved, config, known=label_columns(moved.y, 3))
    if model.startswith("dgt"):  # sequences break ties by id, so reuse those of the same nodes
        others["sequences"] = at[inputs["sequences"].long()].int()[:, order]
        others["sequences"][inputs["sequences"][:, order] < 0] = -1
    if "closeness" in inputs:
        others["closeness"] = inputs["closeness"][:, order]
    torch.testing.assert_close(network(**others), network(**inputs)[order], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_bits_do_not_depend_on_the_number_of_threads(model: str):
    data = block_graph(nodes=700, features=40)
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            settings = QUICK | {"epochs": 2, "hidden_channels": 64}
            results.append(NodeClassifier(model=model, **settings).fit(data).predict_proba())
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)


@pytest.mark.parametrize("model", ["geom-gcn", "h2gcn", "transformer", "graphormer", "gt-full"])
def test_too_large_a_graph_is_refused_before_training(model: str, monkeypatch, tmp_path: Path):
    config = Config.of(model)
    require_memory(config, 1000)
    with pytest.raises(MemoryNeeded, match=rf"{model} on 1,000,000 nodes needs [\d,.]+ [GT]B"):
        require_memory(config, 1_000_000)
    monkeypatch.setattr("dgt.models.available", lambda: 1000)
    monkeypatch.setattr("dgt.baselines.record.FUSED_NODES", 10)
    out = tmp_path / "run"
    with pytest.raises(InputError, match=r"this machine has 1\.0 kB"):
        NodeClassifier(config).fit(block_graph(), out=out)
    assert not out.exists()


@pytest.mark.parametrize("model", ["gcn", "gat", "mlp", "graphsage", "dgt-light"])
def test_other_models_accept_large_graphs(model: str):
    require_memory(Config.of(model), 10**9)


@pytest.mark.parametrize("encoding", ["none", "katz", "laplacian"])
@pytest.mark.parametrize("model", ["transformer", "dgt"])
def test_encodings(model: str, encoding: str, tmp_path: Path):
    data = block_graph()
    settings = QUICK | {"epochs": 2, "encoding": encoding, "laplacian_columns": 5}
    classifier = NodeClassifier(model=model, **settings).fit(data)
    columns = {"none": 0, "katz": 90, "laplacian": 5}[encoding]
    assert classifier.facts_.encoding_channels == columns
    classifier.save(tmp_path)
    again = NodeClassifier.load(tmp_path).predict_proba(data)
    torch.testing.assert_close(again, classifier.predict_proba())


@pytest.mark.parametrize("model", BASELINES)
def test_predicting_on_another_graph(model: str):
    classifier = NodeClassifier(model=model, **(QUICK | {"epochs": 2})).fit(block_graph())
    other = block_graph(nodes=60, seed=1)
    other.node_ids = [f"other{i}" for i in range(60)]
    if model in ("geom-gcn", "gt-full", "gt-sparse"):  # their inputs hold for one graph alone
        with pytest.raises(InputError, match="not the graph that the model was trained on"):
            classifier.predict(other)
    else:
        assert classifier.predict(other).shape == (60,)


def test_defaults_of_a_model():
    assert Config.of("dgt") == Config.of("dgt")
    gcn = Config.of("gcn")
    assert (gcn.encoding.encoding, gcn.model.dropout) == ("none", 0.5)
    assert Config.from_dict(gcn.to_dict()) == gcn
    assert Config.from_dict({"model": {"model": "gcn", "dropout": 0.25}}).model.dropout == 0.25
    assert NodeClassifier(model="gcn").config == gcn
    assert all(own_defaults(model) == {} for model in ("dgt", "dgt-light", None))
