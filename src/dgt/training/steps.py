"""One training step and one evaluation.

Nothing in a training step depends on the values of tensors, so it also runs on the ``meta`` device,
which only computes shapes.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from dgt.config import Config
from dgt.errors import InputError
from dgt.ops.sparse import Parts
from dgt.system.devices import move, pinned
from dgt.training import distributed
from dgt.training.batching import Batched, Chunked, Forward, Whole
from dgt.training.hidden import Hidden
from dgt.training.ranks import Ranks
from dgt.training.task import Task


def steps_for(config: Config, inputs: Mapping[str, Any], device: torch.device) -> Whole:
    """Chooses what a step works on: the whole graph, chunks of it, batches of nodes, or the nodes
    of one rank.

    Args:
        config: The settings.
        inputs: The model's keyword arguments, except for ``nodes``.
        device: Device that the inputs are moved to. Those of batches, and the sequences of chunks,
            stay where they are, and parts of them are moved when they are needed.
    """
    steps, labels = _steps_for(config, inputs, device), inputs.get("labels")
    if config.model.labels != "hide" or labels is None:
        return steps
    return Hidden(steps, labels.any(dim=1).nonzero().squeeze(1).to(device))


def _steps_for(config: Config, inputs: Mapping[str, Any], device: torch.device) -> Whole:
    if distributed.size() > 1:
        return Ranks(inputs, config.train.chunk_size, device)
    if config.train.batch_size is not None:
        return Batched(inputs, config.train.batch_size, config.model.blocks, device)
    stay = {"sequences", "closeness"} if config.train.chunk_size is not None else set()
    inputs = {
        name: x if x is None else (pinned if name in stay else move)(x, device)
        for name, x in inputs.items()
    }
    if config.train.chunk_size is not None:
        return Chunked(inputs, config.train.chunk_size)
    return Whole(inputs)


def compiled(model: nn.Module) -> Forward:
    """Compiles the forward pass of a model, and with it the backward pass. The first call takes
    long."""
    from torch._dynamo.exc import BackendCompilerFailed

    run = torch.compile(model, fullgraph=True)

    def forward(**inputs: Any) -> Tensor:
        sparse = {n for n, x in inputs.items() if x is not None and x.layout == torch.sparse_csr}
        try:
            return run(**{n: Parts.of(x) if n in sparse else x for n, x in inputs.items()})
        except BackendCompilerFailed as error:
            reason = str(error).strip().splitlines()[0]
            raise InputError(f"compile: torch.compile does not work here: {reason}") from error

    return forward


def step(
    model: nn.Module,
    steps: Whole,
    task: Task,
    nodes: Tensor,
    y: Tensor,
    forward: Forward | None = None,
) -> tuple[Tensor, Tensor]:
    """Runs a forward and a backward pass.

    Args:
        model: The model. Its parameters receive gradients.
        steps: What the step works on.
        task: Defines the loss.
        nodes: The nodes of the step, int64.
        y: The labels of all nodes. Shape: ``(N,)``.
        forward: The model, if it is called in another way, see :func:`compiled`.

    Returns:
        This process's share of the mean loss, and the logits of its own nodes.
    """
    with steps.gradients(model):
        logits = steps.logits(forward or model, nodes)
        require_logits(model, logits, len(steps.own(nodes)), task.out_channels)
        loss = task.loss(logits, y[steps.own(nodes)]) / len(nodes)
        loss.backward()
    return loss.detach(), logits.detach()


def require_logits(model: nn.Module, logits: Any, nodes: int, channels: int) -> None:
    """Raises an error unless a model has returned the logits of as many nodes."""
    if not isinstance(logits, Tensor) or logits.shape != (nodes, channels):
        got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise InputError(
            f"model {type(model).__name__}: returned {got}, expected logits of shape "
            f"({nodes}, {channels})"
        )


@torch.no_grad()
def evaluate(
    model: nn.Module,
    weights: dict[str, Tensor] | None,
    steps: Whole,
    task: Task,
    nodes: Tensor,
    y: Tensor,
) -> tuple[float, Tensor]:
    """Evaluates a model, possibly with other weights than its own.

    Args:
        model: The model.
        weights: The weights to use, by name (None: its own).
        steps: What the evaluation works on.
        task: Defines the loss.
        nodes: The nodes to evaluate, int64.
        y: The labels of all nodes. Shape: ``(N,)``.

    Returns:
        This process's share of the mean loss, and the logits of all ``nodes``.
    """
    model.eval()

    def averaged(**inputs: Any) -> Tensor:
        assert weights is not None
        # Tied weights are in the dict under each of their names.
        return functional_call(model, weights, kwargs=inputs, tie_weights=False)

    total = 0.0
    found = []
    for piece in steps.pieces(nodes):
        own = steps.logits(model if weights is None else averaged, piece)
        require_logits(model, own, len(steps.own(piece)), task.out_channels)
        loss = task.loss(own, y[steps.own(piece)]) / len(piece)
        total += (loss * (len(piece) / len(nodes))).item()
        found.append(steps.all_of(own, piece))
    return total, joined(found)


def joined(pieces: list[Tensor]) -> Tensor:
    """Concatenates tensors; a single one is not copied."""
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces)
