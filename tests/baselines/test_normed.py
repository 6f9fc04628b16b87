"""Norm and skip of graph neural networks, compared with PyTorch's and PyG's layers."""

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GATv2Conv, GCNConv, SAGEConv
from torch_geometric.utils import to_undirected

from dgt import NodeClassifier, baselines
from dgt.config import MODELS, Config, own_defaults
from dgt.prepare import prepare
from tests.small import QUICK, block_graph

NETWORKS = [model for model in MODELS if own_defaults(model).get("norm") == "none"]
SKIPPING = [model for model in NETWORKS if model != "mlp"]


@pytest.fixture
def data():
    data = block_graph(nodes=40)
    data.edge_index = to_undirected(data.edge_index, num_nodes=40)
    torch.manual_seed(0)
    return data


def gcn_of(layer: nn.Module) -> nn.Module:
    pyg = GCNConv(*layer.lin.weight.shape)
    pyg.lin.weight.data, pyg.bias.data = layer.lin.weight.t(), layer.bias
    return pyg


def sage_of(layer: nn.Module) -> nn.Module:
    pyg = SAGEConv(*layer.lin_l.weight.shape)
    pyg.lin_l.weight.data, pyg.lin_r.weight.data = layer.lin_l.weight.t(), layer.lin_r.weight.t()
    pyg.lin_l.bias.data = layer.lin_r.bias
    return pyg


def gat_of(layer: nn.Module) -> nn.Module:
    pyg = GATConv(layer.in_channels, layer.out_channels, layer.heads)
    pyg.lin.weight.data, pyg.bias.data = layer.lin.weight.t(), layer.bias
    pyg.att_src.data, pyg.att_dst.data = layer.att_src, layer.att_dst
    return pyg


def gatv2_of(layer: nn.Module) -> nn.Module:
    pyg = GATv2Conv(layer.in_channels, layer.out_channels, layer.heads)
    for ours, theirs in ((layer.lin_l, pyg.lin_l), (layer.lin_r, pyg.lin_r)):
        theirs.weight.data, theirs.bias.data = ours.weight.t(), ours.bias
    pyg.att.data, pyg.bias.data = layer.att, layer.bias
    return pyg


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize(
    ("kind", "of", "act"),
    [
        (baselines.GCN, gcn_of, torch.relu),
        (baselines.GraphSAGE, sage_of, torch.relu),
        (baselines.GAT, gat_of, F.elu),
        (baselines.GATv2, gatv2_of, F.elu),
    ],
)
def test_layers_are_those_of_pyg_with_a_linear_skip_and_a_norm(data, norm, kind, of, act):
    network = kind(12, 8, 3, layers=3, norm=norm, skip=True, dropout=0.0, input_dropout=0.0)
    for weight in network.parameters():
        weight.data += 0.1 * torch.randn_like(weight)  # the scale and the shift matter
    given = prepare(data, Config.of(kind.__name__.lower()))
    norms = []
    for each in network.layers:
        norms.append(nn.BatchNorm1d(8) if norm == "batch" else nn.LayerNorm(8))
        norms[-1].weight.data, norms[-1].bias.data = each.scale, each.shift

    def expected() -> Tensor:
        h = data.x
        for each, normalize in zip(network.layers, norms, strict=True):
            h = of(each.layer)(h, data.edge_index) + h @ each.skip.weight
            h = act(normalize(h))
        return F.linear(h, network.out.weight, network.out.bias)

    close = {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(network(**given), expected(), **close)  # and updates running means
    network.eval()
    for each, normalize in zip(network.layers, norms, strict=True):
        normalize.eval()
        if norm == "batch":
            # PyTorch's running variance is the unbiased one.
            mean, variance = normalize.running_mean, normalize.running_var
            torch.testing.assert_close(each.norm.mean, mean)
            torch.testing.assert_close((each.norm.variance - 0.9) * 40 / 39, variance - 0.9)
            variance.copy_(each.norm.variance)
    torch.testing.assert_close(network(**given), expected(), **close)
    nodes = torch.tensor([3, 1])
    torch.testing.assert_close(network(**given, nodes=nodes), network(**given)[nodes])


@pytest.mark.parametrize("kind", [baselines.MixHop, baselines.JKNet])
def test_hidden_layers_that_are_joined(data, kind):
    network = kind(12, 8, 3, norm="layer", skip=True).eval()
    given = prepare(data, Config.of(kind.__name__.lower()))
    h, each = data.x, []
    for layer in network.layers:
        out = layer.layer(h, given["normalized"]) + h @ layer.skip.weight
        h = torch.relu(F.layer_norm(out, out.shape[1:], layer.scale, layer.shift))
        each.append(h)
    last = torch.cat(each, dim=1) if kind is baselines.JKNet else h
    torch.testing.assert_close(network(**given), network.out(last), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", SKIPPING)
@pytest.mark.parametrize("precision", ["single", "bfloat16"])
def test_bits_do_not_depend_on_threads_or_on_saving(model: str, precision: str, tmp_path: Path):
    data = block_graph(nodes=700, features=40)
    settings = {"norm": "batch", "skip": True, "layers": 3, "precision": precision, "epochs": 3}
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            classifier = NodeClassifier(model=model, **(QUICK | settings)).fit(data)
            results.append(classifier.predict_proba())
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)
    classifier.save(tmp_path)
    assert torch.equal(NodeClassifier.load(tmp_path).predict_proba(data), results[0])


@pytest.mark.parametrize("model", NETWORKS)
def test_settings_from_before_these_networks_had_a_norm(model: str):
    now = Config.of(model)
    assert (now.model.norm, now.model.skip) == ("none", False)
    old = now.to_dict()
    del old["model"]["skip"]
    old["model"]["norm"] = "layer"  # written into every file, and without effect
    assert Config.from_dict(old) == now
    given = Config.from_dict({"model": {"model": model, "norm": "layer"}})
    assert given.model.norm == "layer"
    assert Config.from_dict(given.to_dict()) == given
