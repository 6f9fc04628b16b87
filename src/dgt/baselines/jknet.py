"""Jumping Knowledge Network."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import JumpingKnowledge

from dgt.baselines.gcn import GCNLayer
from dgt.nn.dropout import dropout as drop
from dgt.nn.linear import Linear


class JKNet(nn.Module):
    r"""JKNet from `"Representation Learning on Graphs with Jumping Knowledge Networks"
    <https://arxiv.org/abs/1806.03536>`_, with concatenation:

    .. math::
        \mathbf{H}^{(l)} = \mathrm{ReLU}(\mathbf{S} \mathbf{H}^{(l-1)} \mathbf{W}^{(l)}), \qquad
        \mathbf{Y} = [\mathbf{H}^{(1)} \,\|\, \dots \,\|\, \mathbf{H}^{(L)}] \mathbf{W}

    with the layers of :class:`~dgt.baselines.gcn.GCN`.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels of each layer.
        out_channels: Number of classes.
        layers: Number of layers L.
        dropout: Dropout of hidden channels.
        input_dropout: Dropout of the features.
    """

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
        self.dropout = dropout
        self.layers: Sequence[GCNLayer] = nn.ModuleList(  # type: ignore[assignment]
            GCNLayer(
                hidden_channels if l else in_channels,
                hidden_channels,
                dropout=dropout if l else input_dropout,
            )
            for l in range(layers)
        )
        self.jump = JumpingKnowledge("cat")
        self.out = Linear(layers * hidden_channels, out_channels)

    def forward(self, x: Tensor, normalized: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            normalized: The matrix S, sparse (CSR). Shape: ``(N, N)``.
            nodes: The nodes whose logits are wanted (default: all).
        """
        each = []
        for layer in self.layers:
            x = torch.relu(layer(x, normalized))
            each.append(x if nodes is None else x[nodes])
        return self.out(drop(self.jump(each), self.dropout, self.training))
