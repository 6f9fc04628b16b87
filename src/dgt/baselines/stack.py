"""A stack of layers of the same kind."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dgt.baselines.normed import normed
from dgt.baselines.record import GNN
from dgt.config import ModelConfig
from dgt.ops.dropout import dropout as drop
from dgt.ops.linear import Linear


class Stack(nn.Module):
    """A stack of layers with ReLU in between; the last layer outputs the logits.

    With a norm or a skip (:class:`~dgt.baselines.normed.Normed`), all layers are hidden layers,
    followed by ReLU, and a linear layer outputs the logits.

    Args:
        in_channels: Number of features.
        hidden_channels: Hidden channels of each node.
        out_channels: Number of classes.
        layers: Number of layers.
        dropout: Dropout probability of hidden channels.
        input_dropout: Dropout probability of the features.
        norm: ``"layer"``, ``"batch"`` or ``"none"``: norm of each layer's output.
        skip: Whether to add a linear function of each layer's input to its output.
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
        dropout: float = GNN["dropout"],
        input_dropout: float = GNN["input_dropout"],
        norm: str = GNN["norm"],
        skip: bool = ModelConfig.skip,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        head = norm != "none" or skip
        widths = [in_channels, *[hidden_channels] * (layers - 1)]
        widths.append(hidden_channels if head else out_channels)
        self.layers: Sequence[nn.Module] = nn.ModuleList(  # type: ignore[assignment]
            self._layer(widths[l], widths[l + 1], norm, skip, dropout if l else input_dropout)
            for l in range(layers)
        )
        self.out = Linear(hidden_channels, out_channels) if head else None

    def _layer(
        self, in_channels: int, out_channels: int, norm: str, skip: bool, dropout: float
    ) -> nn.Module:
        layer = self.Layer(in_channels, out_channels, dropout=dropout)
        return normed(layer, in_channels, out_channels, norm=norm, skip=skip, dropout=dropout)

    def through(self, x: Tensor, *matrix: Tensor, nodes: Tensor | None) -> Tensor:
        """Returns the logits of all nodes or of ``nodes``; every layer is also given ``matrix``."""
        for l, layer in enumerate(self.layers):
            x = layer(torch.relu(x) if l else x, *matrix)
        x = x if nodes is None else x[nodes]
        if self.out is None:
            return x
        return self.out(drop(x, self.dropout, self.training, relu=True))
