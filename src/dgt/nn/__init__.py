"""Deformable Graph Attention and the models built on it."""

from dgt.config import Config
from dgt.nn.attention import DeformableGraphAttention
from dgt.nn.interpolation import Kernel
from dgt.nn.model import DGT, Attention, DGTLight
from dgt.nn.positional import KatzEncoding

__all__ = [
    "DGT",
    "Attention",
    "DGTLight",
    "DeformableGraphAttention",
    "KatzEncoding",
    "Kernel",
    "build",
]


def build(config: Config, in_channels: int, out_channels: int, encoding_channels: int) -> DGT:
    """The model that the settings describe."""
    model = config.model
    return DGT(
        in_channels,
        model.hidden_channels,
        out_channels,
        criteria=len(config.criteria),
        blocks=model.blocks,
        heads=model.heads,
        keys=model.keys,
        kernel=Kernel(model.interpolation, model.gamma, model.epsilon, model.normalize),
        norm=model.norm,
        mlp_ratio=model.mlp_ratio,
        dropout=model.dropout,
        input_dropout=model.input_dropout,
        encoding_channels=encoding_channels,
        encoding_dropout=model.encoding_dropout,
        node_dropout=model.node_dropout,
        value_dropout=model.value_dropout,
        feature_layers=model.feature_layers,
    )
