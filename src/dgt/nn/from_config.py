"""Builds DGT from the settings, and the records of DGT and DGT-light."""

from dataclasses import replace

from dgt.config import DEFAULT_CRITERIA, Config
from dgt.nn.model import DGT
from dgt.nn.record import Model
from dgt.ops.deformable_attention.reference import Kernel


def build(config: Config, in_channels: int, out_channels: int, encoding_channels: int) -> DGT:
    """Builds DGT or DGT-light from the settings.

    Args:
        config: All settings.
        in_channels: Number of features.
        out_channels: Number of classes.
        encoding_channels: Number of columns of the positional encoding; 0 for none.
    """
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


DGT_MODEL = Model(
    build=build,
    inputs=("x", "sequences", "encoding"),
    grid={"blocks": (1, 2), "gamma": (1, 2, 4, 8, 16, 32, 64, 128, 256)},
    criteria=DEFAULT_CRITERIA,
    batching=True,
)
DGT_LIGHT_MODEL = replace(DGT_MODEL, criteria=DEFAULT_CRITERIA[:1], single_criterion=True)
