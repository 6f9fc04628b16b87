"""Builds DGT from the settings, and the records of DGT and DGT-light."""

from dataclasses import replace
from typing import Any

from dgt.config import DEFAULT_CRITERIA, Config
from dgt.nn.model import DGT
from dgt.nn.record import Model
from dgt.ops.deformable_attention.reference import Kernel

SHARED = (
    *("blocks", "heads", "keys", "norm", "mlp_ratio", "feature_layers"),
    *("dropout", "input_dropout", "encoding_dropout", "node_dropout", "value_dropout"),
)
"""Settings that DGT and dgt-plus take as arguments of the same names."""
USED = (
    *(*SHARED, "interpolation", "gamma", "epsilon", "normalize"),
    *("feature_weight_decay", "encoding_weight_decay", "key_weight_decay"),
)
"""All settings that DGT and dgt-plus use, besides those of their inputs."""


def build(config: Config, in_channels: int, out_channels: int, encoding_channels: int) -> DGT:
    """Builds DGT or DGT-light from the settings.

    Args:
        config: All settings.
        in_channels: Number of features.
        out_channels: Number of classes.
        encoding_channels: Number of columns of the positional encoding; 0 for none.
    """
    return DGT(
        in_channels,
        config.model.hidden_channels,
        out_channels,
        encoding_channels=encoding_channels,
        **shared_arguments(config),
    )


def shared_arguments(config: Config) -> dict[str, Any]:
    """Returns the keyword arguments that DGT and dgt-plus take from the settings."""
    model = config.model
    return {
        "criteria": len(config.criteria),
        "kernel": Kernel(model.interpolation, model.gamma, model.epsilon, model.normalize),
        **{name: getattr(model, name) for name in SHARED},
    }


DGT_MODEL = Model(
    build=build,
    inputs=("x", "sequences", "encoding"),
    grid={"blocks": (1, 2), "gamma": (1, 2, 4, 8, 16, 32, 64, 128, 256)},
    criteria=DEFAULT_CRITERIA,
    settings=USED,
    batching=True,
)
DGT_LIGHT_MODEL = replace(DGT_MODEL, criteria=DEFAULT_CRITERIA[:1], single_criterion=True)
