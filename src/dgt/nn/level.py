"""What one block reads."""

from typing import NamedTuple

import torch
from torch import Tensor

from dgt.ops.entries import take_sequences
from dgt.ops.taken import take


class Level(NamedTuple):
    """The nodes for which one block attends, and what it reads for them."""

    sequences: Tensor
    """Sequences of the nodes that attend: row indices of the block's input. Shape:
    ``(T, Q, L)``."""
    nodes: Tensor | None = None
    """Rows of the block's input that attend, int64; None for all. Shape: ``(Q,)``."""
    closeness: Tensor | None = None
    """The closeness of the nodes in the sequences, for attention that sees it. Shape:
    ``(T, Q, L)``."""
    labels: Tensor | None = None
    """Known labels of the rows of the block's input, for values that carry them. Shape:
    ``(N, label_channels)``."""

    def rows(self, z: Tensor) -> Tensor:
        """Returns the rows of the nodes that attend. Shape: ``(Q, C)``."""
        return z if self.nodes is None else z[self.nodes]

    def take(self, nodes: Tensor) -> "Level":
        """Returns the level of a few of all nodes."""
        closeness = self.closeness
        if closeness is not None:
            closeness = take(closeness, nodes)
        sequences = take_sequences(self.sequences, nodes)
        return self._replace(sequences=sequences, nodes=nodes, closeness=closeness)

    def of(self, criteria: slice, device: torch.device) -> "Level":
        """Returns the level of some criteria, on a device. Of sequences that stay on the CPU, only
        those that are read are thus on a GPU."""
        sequences, closeness = (
            None if x is None else x[criteria].to(device, non_blocking=True)
            for x in (self.sequences, self.closeness)
        )
        assert sequences is not None
        return self._replace(sequences=sequences, closeness=closeness)
