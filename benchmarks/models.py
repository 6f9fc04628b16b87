"""The models that are compared, and their inputs."""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN, GraphSAGE, Polynormer, SGFormer, TransformerConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import degree, to_torch_csr_tensor

from dgt.config import Config
from dgt.nn import build
from dgt.prepare import prepare

CHANNELS = 64
HEADS = 4
# The time of full attention grows quadratically with the number of nodes.
FULL_NODES = 30_000

# The forms of each model: PyG's edge_index, a torch.sparse CSR adjacency matrix, or its own.
FORMS = {
    "dgt": ("own",),
    "dgt-light": ("own",),
    "gcn": ("edges", "csr"),
    "sage": ("edges", "csr"),
    "gat": ("edges",),
    "transformer-conv": ("edges",),
    "sgformer": ("edges", "csr"),
    "polynormer": ("edges", "csr"),
    "full-attention": ("own",),
}

Setup = tuple[nn.Module, dict[str, Any]]


def setup(model: str, form: str, data: Data, config: Config) -> Setup:
    """Returns the model, with two layers where it has layers, and its arguments by name."""
    if model in ("dgt", "dgt-light"):
        config = config.replace(model=model)
        inputs = prepare(data, config)
        encoding = inputs["encoding"]
        assert encoding is not None
        return build(config, data.num_features, _classes(data), encoding.size(1)), inputs
    return _PEERS[model](data, form)


def _classes(data: Data) -> int:
    return int(data.y.max()) + 1


def _csr(data: Data, edge_index: Tensor, weights: Tensor) -> Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CSR tensors are in beta
        return to_torch_csr_tensor(edge_index, weights, size=(data.num_nodes, data.num_nodes))


def _gcn(data: Data, form: str) -> Setup:
    csr = form == "csr"
    model = GCN(
        data.num_features,
        CHANNELS,
        2,
        _classes(data),
        dropout=0.5,
        cached=not csr,
        normalize=not csr,
    )
    edges = data.edge_index
    if csr:
        edges = _csr(data, *gcn_norm(edges, num_nodes=data.num_nodes))
    return model, {"x": data.x, "edge_index": edges}


def _sage(data: Data, form: str) -> Setup:
    csr = form == "csr"
    # A mean over neighbors is a weighted sum, which torch.sparse supports.
    aggregation = "sum" if csr else "mean"
    model = GraphSAGE(data.num_features, CHANNELS, 2, _classes(data), dropout=0.5, aggr=aggregation)
    edges = data.edge_index
    if csr:
        weights = 1 / degree(edges[0], data.num_nodes)[edges[0]]
        edges = _csr(data, edges, weights)
    return model, {"x": data.x, "edge_index": edges}


def _gat(data: Data, form: str) -> Setup:
    model = GAT(data.num_features, CHANNELS, 2, _classes(data), dropout=0.5, heads=HEADS)
    return model, {"x": data.x, "edge_index": data.edge_index}


def _transformer_conv(data: Data, form: str) -> Setup:
    return TransformerConvs(data.num_features, _classes(data)), {
        "x": data.x,
        "edge_index": data.edge_index,
    }


def _sgformer(data: Data, form: str) -> Setup:
    model = SGFormer(data.num_features, CHANNELS, _classes(data))
    edges = _weighted_once(model.graph_conv.convs, data, form)
    batch = torch.zeros(data.num_nodes, dtype=torch.long)
    return model, {"x": data.x, "edge_index": edges, "batch": batch}


def _weighted_once(convs: nn.ModuleList, data: Data, form: str) -> Tensor:
    """Returns the edges of a model, whose GCN layers compute edge weights once, not in each
    step."""
    csr = form == "csr"
    for conv in convs:
        conv.cached, conv.normalize = not csr, not csr
    if csr:
        return _csr(data, *gcn_norm(data.edge_index, num_nodes=data.num_nodes))
    return data.edge_index


def _polynormer(data: Data, form: str) -> Setup:
    model = Polynormer(data.num_features, CHANNELS, _classes(data))
    edges = _weighted_once(model.local_convs, data, form)
    model._global = True  # the whole model, as after its initial local epochs
    batch = torch.zeros(data.num_nodes, dtype=torch.long)
    return model, {"x": data.x, "edge_index": edges, "batch": batch}


def _full_attention(data: Data, form: str) -> Setup:
    return FullAttention(data.num_features, _classes(data)), {"x": data.x}


_PEERS: dict[str, Callable[[Data, str], Setup]] = {
    "gcn": _gcn,
    "sage": _sage,
    "gat": _gat,
    "transformer-conv": _transformer_conv,
    "sgformer": _sgformer,
    "polynormer": _polynormer,
    "full-attention": _full_attention,
}


class TransformerConvs(nn.Module):
    """Two layers of PyG's TransformerConv: attention over neighbors."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first = TransformerConv(in_channels, CHANNELS // HEADS, heads=HEADS)
        self.last = TransformerConv(CHANNELS, out_channels)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.last(self.dropout(self.first(x, edge_index).relu()), edge_index)


class FullAttention(nn.Module):
    """One block of PyTorch's own Transformer over all nodes."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.first = nn.Linear(in_channels, CHANNELS)
        self.block = nn.TransformerEncoderLayer(
            CHANNELS, HEADS, CHANNELS, dropout=0.0, batch_first=True, norm_first=True
        )
        self.last = nn.Linear(CHANNELS, out_channels)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.block(self.first(x)[None])[0])
