"""Checkpoints: the state of training in one safetensors file, to resume interrupted runs."""

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from dgt.config.documents import fields_of, parse_json
from dgt.errors import InputError
from dgt.storage.tensors import read_tensors, require_like, write_tensors
from dgt.system.devices import random_state, set_random_state


@dataclass
class Progress:
    """Progress of training."""

    inputs: str
    """The :func:`fingerprint` of the inputs and labels."""
    rows: list[dict[str, float]] = field(default_factory=list)
    """Metrics of each epoch so far."""
    best_epoch: int = 0
    best_value: float = math.nan
    """The metric on validation nodes in the best epoch."""
    best_loss: float = math.inf
    seconds: float = 0.0


def save(
    path: Path,
    progress: Progress,
    model: nn.Module,
    average: dict[str, Tensor],
    best: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Writes the state of training, including the random state.

    The state of Adam is stored by parameter name.

    Args:
        path: File to write.
        progress: Progress of training.
        model: The model.
        average: Average of the weights.
        best: Weights of the best epoch.
        optimizer: The optimizer.
    """
    tensors = {
        **{f"model.{name}": value for name, value in model.state_dict().items()},
        # Without averaging, these are the weights themselves, and a file cannot share memory.
        **{f"average.{name}": value.clone() for name, value in average.items()},
        **{f"best.{name}": value for name, value in best.items()},
        "random": torch.get_rng_state(),
    }
    for name, weight in model.named_parameters():
        for key, value in optimizer.state.get(weight, {}).items():
            tensors[f"adam.{name}.{key}"] = value
    on_device = random_state(_device(model))
    if on_device is not None:
        tensors["random_on_device"] = on_device
    tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    write_tensors(path, tensors, {"progress": json.dumps(asdict(progress))})


def read(path: Path, inputs: str, model: nn.Module) -> tuple[Progress, dict[str, Tensor]]:
    """Reads a checkpoint and checks that it fits a model.

    Args:
        path: File that was written by :func:`save`.
        inputs: The :func:`fingerprint` that it must have been saved with.
        model: The model that will be restored.

    Returns:
        The progress, and the tensors for :func:`restore`.
    """
    tensors, metadata = read_tensors(path)
    if "progress" not in metadata:
        raise InputError(f"{path}: a safetensors file, but not a checkpoint of dgt")
    place = f"{path}: progress"
    progress = Progress(**fields_of(Progress, parse_json(metadata["progress"], place), place))
    for number, row in enumerate(progress.rows, start=1):
        if row.get("epoch") != number or row.keys() != progress.rows[0].keys():
            raise InputError(f"{place}: rows: expected the metrics of epoch {number}")
    if not 1 <= progress.best_epoch <= len(progress.rows):
        raise InputError(f"{place}: best_epoch: got {progress.best_epoch}, expected a past epoch")
    if progress.inputs != inputs:
        raise InputError(
            f"{path}: cannot resume: the graph is not the one that the run was started with"
        )
    require_like(path, tensors, _expected(model, tensors))
    return progress, tensors


def _expected(model: nn.Module, found: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns tensors with the names, shapes and types of those that :func:`save` writes."""
    state = model.state_dict()
    expected = {f"{part}.{n}": v for part in ("model", "average", "best") for n, v in state.items()}
    for name, weight in model.named_parameters():
        # A parameter that never had a gradient has no state.
        if any(n.startswith(f"adam.{name}.") for n in found):
            expected[f"adam.{name}.step"] = torch.empty(())
            expected |= {f"adam.{name}.{key}": weight for key in ("exp_avg", "exp_avg_sq")}
    expected["random"] = torch.get_rng_state()
    if "random_on_device" in found:
        expected["random_on_device"] = found["random_on_device"]
    return expected


def restore(
    tensors: dict[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Restores the model, the optimizer and the random state.

    Returns:
        The average of the weights and the weights of the best epoch, on the model's device.
    """
    device = _device(model)

    def under(prefix: str) -> dict[str, Tensor]:
        return {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}

    model.load_state_dict(under("model."))
    state: dict[str, dict[str, Tensor]] = {}
    for name, value in under("adam.").items():
        parameter, _, key = name.rpartition(".")
        state.setdefault(parameter, {})[key] = value
    # The optimizer numbers its parameters in the order of its groups.
    grouped = [weight for group in optimizer.param_groups for weight in group["params"]]
    names = {weight: name for name, weight in model.named_parameters()}
    numbered = {i: state[names[w]] for i, w in enumerate(grouped) if names[w] in state}
    optimizer.load_state_dict({**optimizer.state_dict(), "state": numbered})
    try:
        torch.set_rng_state(tensors["random"])
        if "random_on_device" in tensors:
            set_random_state(tensors["random_on_device"], device)
    except (RuntimeError, TypeError) as error:
        raise InputError(f"checkpoint: damaged random state: {error}") from None
    average, best = (
        {name: value.to(device) for name, value in under(prefix).items()}
        for prefix in ("average.", "best.")
    )
    return average, best


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
