"""Jumping Knowledge Network."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import JumpingKnowledge

from dgt.baselines.gcn import GCNLayer
from dgt.baselines.normed import normed
from dgt.baselines.record import GNN, GNN_SETTINGS, LAYERS
from dgt.config import ModelConfig
from dgt.nn.record import Model, builder
from dgt.ops.dropout import dropout as drop
from dgt.ops.linear import Linear


class JKNet(nn.Module):
    r"""JKNet from `"Representation Learning on Graphs with Jumping Knowledge Networks"
    <https://arxiv.org/abs/1806.03536>`_, with concatenation:

    .. math::
        \mathbf{H}^{(l)} = \mathrm{ReLU}(\mathbf{S} \mathbf{H}^{(l-1)} \mathbf{W}^{(l)}), \qquad
        \mathbf{Y} = [\mathbf{H}^{(1)} \,\|\, \dots \,\|\, \mathbf{H}^{(L)}] \mathbf{W}

    The layers are those of :class:`~dgt.baselines.gcn.GCN`. For the norm and the skip, see
    :class:`~dgt.baselines.normed.Normed`.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels of each layer.
        out_channels: Number of classes.
        layers: Number of layers L.
        dropout: Dropout probability of hidden channels.
        input_dropout: Dropout probability of the features.
        norm: ``"layer"``, ``"batch"`` or ``"none"``: norm of each layer's output.
        skip: Whether to add a linear function of each layer's input to its output.
    """

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
        each = []
        for l in range(layers):
            wide, of_input = (hidden_channels, dropout) if l else (in_channels, input_dropout)
            layer = GCNLayer(wide, hidden_channels, dropout=of_input)
            each.append(
                normed(layer, wide, hidden_channels, norm=norm, skip=skip, dropout=of_input)
            )
        self.layers: Sequence[nn.Module] = nn.ModuleList(each)  # type: ignore[assignment]
        self.jump = JumpingKnowledge("cat")
        self.out = Linear(layers * hidden_channels, out_channels)

    def forward(self, x: Tensor, normalized: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            normalized: The matrix S, sparse (CSR). Shape: ``(N, N)``.
            nodes: Nodes to return logits for (default: all).
        """
        each = []
        for layer in self.layers:
            x = torch.relu(layer(x, normalized))
            each.append(x if nodes is None else x[nodes])
        return self.out(drop(self.jump(each), self.dropout, self.training))


MODEL = Model(
    build=builder(JKNet, *GNN_SETTINGS),
    inputs=("x", "normalized"),
    grid=LAYERS,
    defaults=GNN,
)
