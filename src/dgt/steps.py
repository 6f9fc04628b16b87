"""What a step of training works on: the whole graph, chunks of it, or batches of nodes."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from dgt.checkpoint import fingerprint
from dgt.nn.bounded import Chunks, Level, by_level
from dgt.nn.sparse import gather_rows


class Whole:
    """All nodes at once.

    Args:
        inputs: What the model takes, by name.
    """

    def __init__(self, inputs: Mapping[str, Any]) -> None:
        self.given = inputs

    def batches(self, nodes: Tensor) -> Iterable[Tensor]:
        """The nodes that each step of an epoch is taken for."""
        return (nodes,)

    def pieces(self, nodes: Tensor) -> Iterable[Tensor]:
        """The nodes that can be evaluated at once."""
        return (nodes,)

    def inputs(self, nodes: Tensor | None) -> dict[str, Any]:
        """What the model takes to give the logits of these nodes, by default of all."""
        return {**self.given, "nodes": nodes}

    def own(self, nodes: Tensor) -> Tensor:
        """Those of the nodes whose logits this process computes."""
        return nodes

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        """Puts the sum over all processes in the place of each tensor."""

    def predict(self, model: nn.Module) -> Tensor:
        """The logits of all nodes."""
        return model(**self.inputs(None))

    def identity(self) -> str:
        """A hash of the inputs."""
        return fingerprint(self.given.values())


class Chunked(Whole):
    """All nodes in a step, some of them at a time.

    Args:
        inputs: What the model takes, by name.
        size: Nodes in a chunk.
    """

    def __init__(self, inputs: Mapping[str, Any], size: int) -> None:
        super().__init__(inputs)
        self.size = size

    def inputs(self, nodes: Tensor | None) -> dict[str, Any]:
        return {**self.given, "nodes": nodes, "way": Chunks(self.size)}


class Batched(Whole):
    """A few nodes in a step, with exactly those that they can reach, block by block.

    Args:
        inputs: What the model takes, by name.
        size: Nodes in a batch.
        blocks: The model's number of blocks.
    """

    def __init__(self, inputs: Mapping[str, Any], size: int, blocks: int) -> None:
        super().__init__(inputs)
        self.size = size
        self.blocks = blocks

    def batches(self, nodes: Tensor) -> Iterable[Tensor]:
        return nodes[torch.randperm(len(nodes))].split(self.size)

    def pieces(self, nodes: Tensor) -> Iterable[Tensor]:
        return nodes.split(self.size)

    def inputs(self, nodes: Tensor | None) -> dict[str, Any]:
        x, sequences, encoding = (self.given[name] for name in ("x", "sequences", "encoding"))
        if nodes is None:
            nodes = torch.arange(sequences.size(1))
        levels: list[Level] = []
        for _ in range(self.blocks):
            nodes, level = reach(sequences, nodes)
            levels.insert(0, level)
        return {
            "x": gather_rows(x, nodes),
            "sequences": levels,
            "encoding": None if encoding is None else gather_rows(encoding, nodes),
            "way": by_level,
        }

    def predict(self, model: nn.Module) -> Tensor:
        nodes = torch.arange(self.given["sequences"].size(1))
        return torch.cat([model(**self.inputs(piece)) for piece in self.pieces(nodes)])


def reach(sequences: Tensor, nodes: Tensor) -> tuple[Tensor, Level]:
    """All nodes that stand in the sequences of some nodes, by id, and these sequences as places
    among them.

    Args:
        sequences: Node indices, int32, padded with -1. Shape: ``(T, N, L)``.
        nodes: The nodes that read, int64.
    """
    N = sequences.size(1)
    read = sequences[:, nodes]
    seen = torch.zeros(N + 1, dtype=torch.bool)
    seen[read.flatten()] = True  # the last place is that of the padding
    seen[nodes] = True
    seen[N] = False
    found = seen.nonzero().squeeze(1)
    place = torch.full((N + 1,), -1, dtype=torch.int32)
    place[found] = torch.arange(len(found), dtype=torch.int32)
    return found, Level(place[read], place[nodes].long())
