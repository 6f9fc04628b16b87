"""What a training step works on: the whole graph, chunks of it, or batches of nodes.

Each class only calls the model and does not depend on its architecture. Training with several
processes is in :mod:`dgt.training.ranks`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from dgt.nn.model import Level
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

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        """Sums each tensor over all processes, in place."""

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
        x, sequences, encoding = (self.given[name] for name in ("x", "sequences", "encoding"))
        nodes = nodes.to(sequences.device)
        levels: list[Level] = []
        for _ in range(self.blocks):
            nodes, level = reach(sequences, nodes)
            levels.insert(0, _moved(level, self.device))
        rows = (None if each is None else gather_rows(each, nodes) for each in (x, encoding))
        x, encoding = (None if each is None else move(each, self.device) for each in rows)
        return {"x": x, "sequences": levels, "encoding": encoding}

    @property
    def device(self) -> torch.device:
        return self._device or self.given["sequences"].device

    def _all(self) -> Tensor:
        return torch.arange(self.given["sequences"].size(1), device=self.device)


def _moved(level: Level, device: torch.device) -> Level:
    nodes = None if level.nodes is None else move(level.nodes, device)
    return Level(move(level.sequences, device), nodes)


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
