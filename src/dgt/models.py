"""The models by name: how each is built, what it takes, and what the paper searches for it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import nn

from dgt import baselines
from dgt.config import Config
from dgt.errors import MemoryNeeded
from dgt.machine import available
from dgt.nn import build as build_dgt

Values = tuple[Any, ...]


class Model(NamedTuple):
    """What the rest of the program knows of a model.

    It is a module whose ``model(**inputs, nodes=nodes)`` are the logits of these nodes.
    """

    build: Callable[[Config, int, int, int], nn.Module]
    """Makes it from the settings and the numbers of features, classes and encoding columns."""
    inputs: tuple[str, ...]
    """What its ``forward`` takes: names of ``dgt.prepare.INPUTS``."""
    grid: dict[str, Values]
    """The paper's grid: its settings besides lr and weight decay, and their values."""
    memory: Callable[[Config, int], float] = lambda config, nodes: 0.0
    """Bytes that it needs for training on so many nodes, where these grow with their square."""


def _of(kind: type[nn.Module], *settings: str) -> Callable[[Config, int, int, int], nn.Module]:
    """Builds a module from the settings of these names, which are also those of its arguments."""

    def build(config: Config, inputs: int, classes: int, columns: int) -> nn.Module:
        known = {
            **vars(config.model),
            "laplacian_columns": config.encoding.laplacian_columns,
            "encoding_channels": columns,
        }
        chosen = {name: known[name] for name in ("input_dropout", *settings)}
        return kind(inputs, config.model.hidden_channels, classes, **chosen)

    return build


# Full attention through a fused kernel keeps no matrix of N x N, and up to this many nodes its time
# is bearable; beyond, the weights of all heads and blocks and their gradients are counted.
FUSED_NODES = 10_000


def _bytes(config: Config) -> int:
    return 8 if config.model.precision == "double" else 4


def _full_attention(config: Config, nodes: int) -> float:
    if nodes <= FUSED_NODES:
        return 0.0
    return 2 * _bytes(config) * config.model.heads * config.model.blocks * nodes**2


def _hops(config: Config, nodes: int) -> float:
    """All distances between nodes, and the rows of training and of validation nodes."""
    return 3.0 * nodes**2


def _distances(config: Config, nodes: int) -> float:
    """All distances between nodes, and their products for Isomap."""
    return 4 * 8.0 * nodes**2


def _two_hops(config: Config, nodes: int) -> float:
    """The nodes two edges apart, which may be most, as numbers and in the making."""
    return 3 * 12.0 * nodes**2


LAYERS = {"layers": (1, 2, 3, 4)}
HEADS = {"heads": (1, 4)}
BLOCKS = {"blocks": (1, 2, 3)}
COMMON_GRID: dict[str, Values] = {"lr": (0.05, 0.01, 0.005), "weight_decay": (1e-3, 5e-4, 5e-5)}
DGT_GRID = {"blocks": (1, 2), "gamma": (1, 2, 4, 8, 16, 32, 64, 128, 256)}

_NETWORK = ("layers", "dropout")
_BLOCKS = ("blocks", "heads", "norm", "dropout")
_ENCODING = ("encoding_channels", "encoding_dropout")

MODELS: dict[str, Model] = {
    "mlp": Model(_of(baselines.MLP, *_NETWORK), ("x",), {}),
    "gcn": Model(_of(baselines.GCN, *_NETWORK), ("x", "normalized"), LAYERS),
    "gat": Model(_of(baselines.GAT, *_NETWORK, "heads"), ("x", "joined"), LAYERS | HEADS),
    "graphsage": Model(_of(baselines.GraphSAGE, *_NETWORK), ("x", "mean"), LAYERS),
    "jknet": Model(_of(baselines.JKNet, *_NETWORK), ("x", "normalized"), LAYERS),
    "sgc": Model(_of(baselines.SGC), ("smoothed",), LAYERS),
    "gatv2": Model(_of(baselines.GATv2, *_NETWORK, "heads"), ("x", "joined"), LAYERS | HEADS),
    "mixhop": Model(_of(baselines.MixHop, *_NETWORK), ("x", "normalized"), LAYERS),
    "geom-gcn": Model(_of(baselines.GeomGCN, "dropout"), ("x", "latent_relations"), {}, _distances),
    "h2gcn": Model(
        _of(baselines.H2GCN, *_NETWORK), ("x", "one_hop", "two_hop"), {"layers": (1, 2)}, _two_hops
    ),
    "deformable-gcn": Model(
        _of(baselines.DeformableGCN, "blocks", "dropout"),
        ("x", "mean", "joined", "smoothed_neighbors"),
        {"blocks": (1, 2), "neighbors": (5, 10, 15, 20, 25)},
    ),
    "transformer": Model(
        _of(baselines.Transformer, *_BLOCKS, *_ENCODING, "mlp_ratio"),
        ("x", "encoding"),
        BLOCKS | HEADS,
        _full_attention,
    ),
    "graphormer": Model(
        _of(baselines.Graphormer, *_BLOCKS, "mlp_ratio"),
        ("x", "degrees", "distances"),
        BLOCKS | HEADS,
        _hops,
    ),
    "gt-full": Model(
        _of(baselines.GTFull, *_BLOCKS, "laplacian_columns"),
        ("x", "laplacian"),
        BLOCKS | HEADS,
        _full_attention,
    ),
    "gt-sparse": Model(
        _of(baselines.GTSparse, *_BLOCKS, "laplacian_columns"),
        ("x", "laplacian", "joined"),
        BLOCKS | HEADS,
    ),
    "dgt-light": Model(build_dgt, ("x", "sequences", "encoding"), DGT_GRID),
    "dgt": Model(build_dgt, ("x", "sequences", "encoding"), DGT_GRID),
}


def build(config: Config, in_channels: int, classes: int, encoding_channels: int) -> nn.Module:
    """The model that the settings describe."""
    build = MODELS[config.model.model].build
    model = build(config, in_channels, classes, encoding_channels)
    return model.double() if config.model.precision == "double" else model


def inputs(config: Config) -> tuple[str, ...]:
    """What the model of the settings takes."""
    return MODELS[config.model.model].inputs


def require_memory(config: Config, nodes: int) -> None:
    """Refuses a model and a graph for which the machine's memory is too small."""
    needed, there = MODELS[config.model.model].memory(config, nodes), available()
    if needed > there:
        raise MemoryNeeded(
            f"{config.model.model} on {nodes:,} nodes needs {needed / 1e9:,.1f} GB of memory, and "
            f"this machine has {there / 1e9:,.1f} GB left"
        )
