"""What a training step works on: the whole graph, chunks of it, or batches of nodes.

Each class only calls the model and does not depend on its architecture. Training with several
processes is in :mod:`dgt.training.ranks`.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from typing import Any, Self

import torch
from torch import Tensor, nn

from dgt.nn.level import Level
from dgt.nn.rows import Chunks, using
from dgt.ops.sparse import Rows, gather_rows
from dgt.storage.fingerprint import fingerprint
from dgt.system.devices import move

Forward = Callable[..., Tensor]
"""A model, or a function with the same keyword arguments."""


class Whole:
    """All nodes at once.

    Args:
        inputs: The model's keyword arguments, except for ``nodes``.
    """

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self.given = inputs

    @property
    def num_nodes(self) -> int:
        """The number of nodes of the whole graph."""
        return self.given["sequences"].size(1)

    def batches(self, nodes: Tensor) -> Iterable[Tensor]:
        """Returns the training nodes of each step of an epoch."""
        return (nodes,)

    def pieces(self, nodes: Tensor) -> Iterable[Tensor]:
        """Splits nodes into groups that are evaluated at once."""
        return (nodes,)

    def logits(self, model: Forward, nodes: Tensor | None = None) -> Tensor:
        """Returns the logits of the nodes (default: all) that belong to this process."""
        return model(**self.given, nodes=nodes)

    def inputs_of(self, nodes: Tensor) -> dict[str, Any]:
        """Returns the model's keyword arguments for a look at some nodes."""
        return dict(self.given)

    def predict(self, model: Forward) -> Tensor:
        """Returns the logits of all nodes, on every process."""
        return self.logits(model)

    def own(self, nodes: Tensor) -> Tensor:
        """Returns the nodes that belong to this process."""
        return nodes

    def all_of(self, rows: Tensor, nodes: Tensor) -> Tensor:
        """Collects the rows of all ``nodes``; ``rows`` are those of this process's own nodes."""
        return rows

    def hiding(self, nodes: Tensor) -> Self:
        """Returns the same with the labels of some nodes hidden."""
        labels = self.given["labels"]
        hidden = copy(self)
        at = self.rows_of(nodes).to(labels.device)
        hidden.given = {**self.given, "labels": labels.index_fill(0, at, 0)}
        return hidden

    def rows_of(self, nodes: Tensor) -> Tensor:
        """Returns the rows of the inputs that hold those of the nodes that belong to this
        process."""
        return nodes

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        """Sums each tensor over all processes, in place."""

    def gradients(self, model: nn.Module) -> AbstractContextManager[None]:
        """Returns a context for a forward and a backward pass, at whose end the gradients of the
        weights are summed over all processes."""
        return nullcontext()

    def identity(self) -> str:
        """Returns a fingerprint of the inputs."""
        return fingerprint(self.given.values())


class Chunked(Whole):
    """All nodes in one step, processed in chunks.

    Args:
        inputs: The model's keyword arguments, except for ``nodes``.
        size: Nodes per chunk.
    """

    def __init__(self, inputs: Mapping[str, Any], size: int) -> None:
        super().__init__(inputs)
        self.size = size

    def logits(self, model: Forward, nodes: Tensor | None = None) -> Tensor:
        with using(Chunks(self.size)):
            return model(**by_rows(self.given), nodes=nodes)


class Batched(Whole):
    """A few nodes per step, with exactly the nodes that they can reach in each block.

    Args:
        inputs: The model's keyword arguments, except for ``nodes``.
        size: Nodes per batch.
        blocks: The model's number of blocks.
        device: Device that the inputs of a batch are moved to (default: where they are).
    """

    def __init__(
        self,
        inputs: Mapping[str, Any],
        size: int,
        blocks: int,
        device: torch.device | None = None,
    ) -> None:
        super().__init__(inputs)
        self.size = size
        self.blocks = blocks
        self._device = device

    def batches(self, nodes: Tensor) -> Iterable[Tensor]:
        return nodes[torch.randperm(len(nodes)).to(nodes.device)].split(self.size)

    def pieces(self, nodes: Tensor) -> Iterable[Tensor]:
        return nodes.split(self.size)

    def logits(self, model: Forward, nodes: Tensor | None = None) -> Tensor:
        return model(**self.inputs(self._all() if nodes is None else nodes))

    def predict(self, model: Forward) -> Tensor:
        return torch.cat([self.logits(model, piece) for piece in self.pieces(self._all())])

    def inputs(self, nodes: Tensor) -> dict[str, Any]:
        """Returns the model's arguments for some nodes: the rows of all nodes they can reach."""
        given = {name: x for name, x in self.given.items() if name != "closeness"}
        sequences, labels = given.pop("sequences"), given.get("labels")
        closeness = self.given.get("closeness")
        nodes = nodes.to(sequences.device)
        levels: list[Level] = []
        for _ in range(self.blocks):
            attend = nodes
            nodes, level = reach(sequences, attend)
            if closeness is not None:
                level = level._replace(closeness=closeness[:, attend])
            if labels is not None and not levels:  # only the last block reads labels
                level = level._replace(labels=gather_rows(labels, nodes))
            levels.insert(0, self._moved(level))
        rows = {name: None if x is None else gather_rows(x, nodes) for name, x in given.items()}
        moved = {name: None if x is None else move(x, self.device) for name, x in rows.items()}
        return {**moved, "sequences": levels}

    @property
    def device(self) -> torch.device:
        return self._device or self.given["sequences"].device

    def _all(self) -> Tensor:
        return torch.arange(self.num_nodes, device=self.device)

    def _moved(self, level: Level) -> Level:
        moved = (None if x is None else move(x, self.device) for x in level)
        return Level(*moved)  # type: ignore[arg-type]


def by_rows(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Wraps the matrices among the inputs, so that the model reads a few rows at a time."""
    matrices = {name: inputs[name] for name in ("x", "encoding")}
    return {**inputs, **{n: Rows(m) if isinstance(m, Tensor) else m for n, m in matrices.items()}}


def reach(sequences: Tensor, nodes: Tensor) -> tuple[Tensor, Level]:
    """Finds all nodes in the sequences of some nodes.

    Args:
        sequences: Node indices, int32, padded with -1. Shape: ``(T, N, L)``.
        nodes: The query nodes, int64.

    Returns:
        The nodes found, in ascending order, and the sequences as indices into them.
    """
    return reach_of(sequences[:, nodes], nodes, sequences.size(1))


def reach_of(read: Tensor, nodes: Tensor, num_nodes: int) -> tuple[Tensor, Level]:
    """Does the same as :func:`reach`, given the sequences ``read`` of the query nodes only. Shape:
    ``(T, Q, L)``."""
    N, device = num_nodes, read.device
    seen = torch.zeros(N + 1, dtype=torch.bool, device=device)
    seen[read.flatten()] = True  # padding sets the last entry
    seen[nodes] = True
    seen[N] = False
    found = seen.nonzero().squeeze(1)
    position = torch.full((N + 1,), -1, dtype=torch.int32, device=device)
    position[found] = torch.arange(len(found), dtype=torch.int32, device=device)
    return found, Level(position[read], position[nodes].long())
