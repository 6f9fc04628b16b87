"""The state of training in one safetensors file, so that a run can go on where it was killed."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor, nn

from dgt.errors import InputError
from dgt.files import write_bytes


@dataclass
class Progress:
    """How far training has come."""

    inputs: str
    """:func:`fingerprint` of what the model is trained on."""
    rows: list[dict[str, float]] = field(default_factory=list)
    """One row for each epoch so far."""
    best_epoch: int = 0
    best_accuracy: float = -1.0
    best_loss: float = float("inf")
    seconds: float = 0.0


def fingerprint(tensors: Iterable[Tensor | None]) -> str:
    """A hash of the tensors' shapes and bits."""
    digest = hashlib.blake2b(digest_size=16)
    for tensor in tensors:
        if tensor is None:
            digest.update(b"none")
            continue
        digest.update(f"{tensor.dtype} {list(tensor.shape)}".encode())
        csr = tensor.layout == torch.sparse_csr
        parts = (tensor.crow_indices(), tensor.col_indices(), tensor.values()) if csr else (tensor,)
        for part in parts:
            digest.update(part.detach().cpu().contiguous().numpy().data)
    return digest.hexdigest()


def save(
    path: Path,
    progress: Progress,
    model: nn.Module,
    average: dict[str, Tensor],
    best: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Writes the whole state of training, that of torch's random numbers too."""
    state = optimizer.state_dict()["state"]
    tensors = {
        **{f"model.{name}": value for name, value in model.state_dict().items()},
        **{f"average.{name}": value for name, value in average.items()},
        **{f"best.{name}": value for name, value in best.items()},
        **{f"adam.{i}.{name}": v for i, values in state.items() for name, v in values.items()},
        "random": torch.get_rng_state(),
    }
    metadata = {"progress": json.dumps(asdict(progress))}
    write_tensors(path, tensors, metadata)


def write_tensors(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
    """Writes a safetensors file, atomically; ``save_file`` would, in a crash, leave a temporary
    file of its own behind."""
    write_bytes(path, serialize(tensors, metadata))


def read(path: Path, inputs: str) -> tuple[Progress, dict[str, Tensor]]:
    """The progress made, and the state of training for :func:`restore`.

    Args:
        path: What :func:`save` has written.
        inputs: The :func:`fingerprint` that it must have been written with.
    """
    try:
        with safe_open(path, framework="pt") as file:
            progress = Progress(**json.loads(file.metadata()["progress"]))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a checkpoint of this program: {error}") from None
    if progress.inputs != inputs:
        raise InputError(
            f"{path}: cannot resume: the graph is not the one that the run was started with"
        )
    return progress, tensors


def restore(
    tensors: dict[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Puts the model, the optimizer and torch's random numbers back into a saved state.

    Returns:
        The weights' average, and the best weights so far.
    """

    def under(prefix: str) -> dict[str, Tensor]:
        return {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}

    model.load_state_dict(under("model."))
    adam: dict[int, dict[str, Tensor]] = {}
    for name, value in under("adam.").items():
        index, key = name.split(".")
        adam.setdefault(int(index), {})[key] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": adam})
    torch.set_rng_state(tensors["random"])
    return under("average."), under("best.")
