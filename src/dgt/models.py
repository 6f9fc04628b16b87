"""All models by name: DGT and the baselines."""

from torch import nn

from dgt.config import MODELS, Config
from dgt.errors import MemoryNeeded
from dgt.nn.record import Model, builder
from dgt.system.machine import available

__all__ = ["MODELS", "Model", "build", "builder", "require_memory"]


def build(config: Config, in_channels: int, classes: int, encoding_channels: int) -> nn.Module:
    """Builds the model of the settings.

    Args:
        config: The settings.
        in_channels: Number of features.
        classes: Number of classes.
        encoding_channels: Number of columns of the positional encoding, or 0.
    """
    model = config.record.build(config, in_channels, classes, encoding_channels)
    return model.double() if config.model.precision == "double" else model


def require_memory(config: Config, nodes: int) -> None:
    """Raises an error if the model does not fit into memory on a graph with ``nodes`` nodes."""
    needed, free = config.record.memory(config, nodes), available()
    if needed > free:
        raise MemoryNeeded(
            f"{config.model.model} on {nodes:,} nodes needs {needed / 1e9:,.1f} GB of memory, but "
            f"this machine has {free / 1e9:,.1f} GB available"
        )
