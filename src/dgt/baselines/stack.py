"""Layers of one kind, one after the other."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn


class Stack(nn.Module):
    """Layers with a ReLU between them, the last one to the logits.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels between layers.
        out_channels: Number of classes.
        layers: Number of layers.
        dropout: Dropout of hidden channels.
        input_dropout: Dropout of the features.
    """

    Layer: type[nn.Module]
    """Takes a number of channels in and out, and ``dropout``, that of its input."""

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        layers: int = 2,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        widths = [in_channels, *[hidden_channels] * (layers - 1), out_channels]
        self.layers: Sequence[nn.Module] = nn.ModuleList(  # type: ignore[assignment]
            self.Layer(widths[l], widths[l + 1], dropout=dropout if l else input_dropout)
            for l in range(layers)
        )

    def through(self, x: Tensor, *matrix: Tensor, nodes: Tensor | None) -> Tensor:
        """The logits of all nodes, or of ``nodes``; each layer takes the matrix too."""
        for l, layer in enumerate(self.layers):
            x = layer(torch.relu(x) if l else x, *matrix)
        return x if nodes is None else x[nodes]
