"""A stack of layers of the same kind."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dgt.baselines.record import DEFAULTS
from dgt.config import ModelConfig


class Stack(nn.Module):
    """A stack of layers with ReLU in between; the last layer outputs the logits.

    Args:
        in_channels: Number of features.
        hidden_channels: Hidden channels of each node.
        out_channels: Number of classes.
        layers: Number of layers.
        dropout: Dropout probability of hidden channels.
        input_dropout: Dropout probability of the features.
    """

    Layer: type[nn.Module]
    """Constructed from the numbers of input and output channels and the ``dropout`` of its
    input."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        layers: int = ModelConfig.layers,
        dropout: float = DEFAULTS["dropout"],
        input_dropout: float = DEFAULTS["input_dropout"],
    ) -> None:
        super().__init__()
        widths = [in_channels, *[hidden_channels] * (layers - 1), out_channels]
        self.layers: Sequence[nn.Module] = nn.ModuleList(  # type: ignore[assignment]
            self.Layer(widths[l], widths[l + 1], dropout=dropout if l else input_dropout)
            for l in range(layers)
        )

    def through(self, x: Tensor, *matrix: Tensor, nodes: Tensor | None) -> Tensor:
        """Returns the logits of all nodes or of ``nodes``; every layer is also given ``matrix``."""
        for l, layer in enumerate(self.layers):
            x = layer(torch.relu(x) if l else x, *matrix)
        return x if nodes is None else x[nodes]
