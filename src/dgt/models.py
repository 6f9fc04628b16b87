"""All models by name: DGT and the baselines."""

import torch
from torch import nn

from dgt.config import MODELS, Config
from dgt.nn.record import Model, builder
from dgt.system.machine import available, require

__all__ = ["MODELS", "Model", "build", "builder", "require_memory"]

COPIES = 6
"""Tensors of the size of a parameter in training: the weight, its gradient, two of Adam, the
average and the best epoch."""


def build(config: Config, in_channels: int, classes: int, encoding_channels: int) -> nn.Module:
    """Builds the model of the settings, after a check that its parameters fit into memory.

    Args:
        config: The settings.
        in_channels: Number of features.
        classes: Number of classes.
        encoding_channels: Number of columns of the positional encoding, or 0.
    """
    channels = in_channels, classes, encoding_channels
    _require_parameters(config, *channels)
    model = config.record.build(config, *channels)
    return model.double() if config.model.precision == "double" else model


def require_memory(config: Config, nodes: int) -> None:
    """Raises an error if the model does not fit into memory on a graph with ``nodes`` nodes."""
    needed = config.record.memory(config, nodes)
    require(needed, f"{config.model.model} on {nodes:,} nodes", available())


def _require_parameters(config: Config, *channels: int) -> None:
    try:
        # Nothing is allocated on this device, and no random number may be drawn.
        with torch.device("meta"), torch.random.fork_rng(devices=[]):
            model = config.record.build(config, *channels)
    except Exception:  # a model of the user that cannot be built on this device
        return
    count = sum(weight.numel() for weight in model.parameters())
    size = 8 if config.model.precision == "double" else 4
    require(COPIES * size * count, f"{config.model.model} with {count:,} parameters")
