"""All models by name: DGT and the baselines."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dgt.config import MODELS, Config
from dgt.errors import InputError
from dgt.nn.ensemble import together
from dgt.nn.precision import in_bfloat16
from dgt.nn.record import Model, builder
from dgt.storage.tensors import require_like
from dgt.system.machine import available, require
from dgt.system.plugins import call

__all__ = ["MODELS", "Model", "build", "builder", "require_memory", "require_weights"]

COPIES = 6
"""Tensors of the size of a parameter in training: the weight, its gradient, two of Adam, the
average and the best epoch."""


def build(
    config: Config, in_channels: int, classes: int, encoding_channels: int | tuple[int, ...]
) -> nn.Module:
    """Builds the network of the settings, after a check that its parameters fit into memory. An
    ensemble has several of them.

    Args:
        config: The settings.
        in_channels: Number of features.
        classes: Number of classes.
        encoding_channels: Number of columns of the positional encoding, or 0; for a model with
            :attr:`~dgt.nn.Model.several_encodings`, of each of them.
    """
    channels = in_channels, classes, encoding_channels
    _require_parameters(config, *channels)
    name = config.model.model
    model = call(f"model {name}", config.record.build, config, *channels)
    if not isinstance(model, nn.Module):
        raise InputError(f"model {name}: built {type(model).__name__}, expected a torch module")
    for key, value in model.state_dict().items():
        if any(
            step == 0 < size - 1 for step, size in zip(value.stride(), value.shape, strict=True)
        ):
            raise InputError(
                f"model {name}: {key}: an expanded tensor, which cannot be loaded; call clone()"
            )
    match config.model.precision:
        case "double":
            return model.double()
        case "bfloat16":
            return in_bfloat16(model)
    return model


def require_memory(config: Config, nodes: int) -> None:
    """Raises an error if the model does not fit into memory on a graph with ``nodes`` nodes."""
    needed = config.record.memory(config, nodes)
    require(needed, f"{config.model.model} on {nodes:,} nodes", available())


def require_weights(
    path: Path,
    weights: dict[str, Tensor],
    config: Config,
    channels: tuple[int, int, int | tuple[int, ...]],
) -> None:
    """Raises an error unless weights are those of a model, before any memory is allocated for it.

    Args:
        path: The file that the weights were read from.
        weights: The weights by name.
        config: The settings.
        channels: Number of features, of classes and of columns of the encoding.
    """
    model = _without_memory(config, *channels) or build(config, *channels)
    model = together([model] * config.train.members)
    try:
        require_like(path, weights, model.state_dict())
    except InputError as error:
        raise InputError(f"{error}; not the weights of the model in config.toml") from None


def _require_parameters(config: Config, *channels: Any) -> None:
    model = _without_memory(config, *channels)
    if isinstance(model, nn.Module):
        count = sum(weight.numel() for weight in model.parameters())
        size = 8 if config.model.precision == "double" else 4
        # The members of an ensemble are trained one after another.
        copies = COPIES + config.train.members - 1
        require(copies * size * count, f"{config.model.model} with {count:,} parameters")


def _without_memory(config: Config, *channels: Any) -> nn.Module | None:
    """Builds the model with shapes only. Returns None if a user's model does not support it."""
    try:
        # Nothing is allocated on this device, and no random number may be drawn.
        with torch.device("meta"), torch.random.fork_rng(devices=[]):
            model = config.record.build(config, *channels)
            return model.double() if config.model.precision == "double" else model
    except Exception:
        return None
