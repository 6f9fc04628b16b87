"""MixHop."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import MixHopConv

from dgt.baselines.normed import normed
from dgt.baselines.record import GNN, GNN_SETTINGS, LAYERS
from dgt.config import ModelConfig
from dgt.nn.record import Model, builder
from dgt.ops.dropout import dropout as drop
from dgt.ops.linear import Linear
from dgt.ops.sparse import SparseLinear, matmul

POWERS = 3  # 0, 1 and 2


class MixHopLayer(MixHopConv):
    """PyG's layer with dropout of its input, which may be sparse. The linear layers are therefore
    applied before the powers of the adjacency matrix, which gives the same result."""

    def __init__(self, in_channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__(in_channels, out_channels, powers=list(range(POWERS)), bias=True)
        self.lins = nn.ModuleList(
            SparseLinear(in_channels, out_channels, dropout=dropout, bias=False)
            for _ in range(POWERS)
        )

    def forward(self, x: Tensor, normalized: Tensor) -> Tensor:
        outs = []
        for power, linear in enumerate(self.lins):
            out = linear(x)
            for _ in range(power):
                out = matmul(normalized, out)
            outs.append(out)
        return torch.cat(outs, dim=1) + self.bias


class MixHop(nn.Module):
    r"""MixHop from `"MixHop: Higher-Order Graph Convolutional Architectures via Sparsified
    Neighborhood Mixing" <https://arxiv.org/abs/1905.00067>`_:

    .. math::
        \mathbf{H}^{(l)} = \mathrm{ReLU}\Big( \big\|_{j=0}^{2} \,
        \mathbf{S}^j \mathbf{H}^{(l-1)} \mathbf{W}^{(l)}_j \Big), \qquad
        \mathbf{S} = \mathbf{D}^{-1/2} (\mathbf{A} + \mathbf{I}) \mathbf{D}^{-1/2}

    followed by a linear layer that outputs the logits. For the norm and the skip, see
    :class:`~dgt.baselines.normed.Normed`.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels of each power.
        out_channels: Number of classes.
        layers: Number of layers.
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
        width = POWERS * hidden_channels
        each = []
        for l in range(layers):
            wide, of_input = (width, dropout) if l else (in_channels, input_dropout)
            layer = MixHopLayer(wide, hidden_channels, dropout=of_input)
            each.append(normed(layer, wide, width, norm=norm, skip=skip, dropout=of_input))
        self.layers: Sequence[nn.Module] = nn.ModuleList(each)  # type: ignore[assignment]
        self.out = Linear(width, out_channels)

    def forward(self, x: Tensor, normalized: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            normalized: The matrix S, sparse (CSR). Shape: ``(N, N)``.
            nodes: Nodes to return logits for (default: all).
        """
        for layer in self.layers:
            x = torch.relu(layer(x, normalized))
        x = x if nodes is None else x[nodes]
        return self.out(drop(x, self.dropout, self.training))


MODEL = Model(
    build=builder(MixHop, *GNN_SETTINGS),
    inputs=("x", "normalized"),
    grid=LAYERS,
    defaults=GNN,
)
