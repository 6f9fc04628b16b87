"""MixHop."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import MixHopConv

from dgt.nn.dropout import dropout as drop
from dgt.nn.linear import Linear
from dgt.nn.sparse import SparseLinear, matmul

POWERS = 3  # 0, 1 and 2


class MixHopLayer(MixHopConv):
    """PyG's layer with dropout of its input, which may be sparse: so the linear layers come before
    the powers of the adjacency matrix and not after them, to the same result."""

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

    and a linear layer to the logits.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels of each power.
        out_channels: Number of classes.
        layers: Number of layers.
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
        self.layers: Sequence[MixHopLayer] = nn.ModuleList(  # type: ignore[assignment]
            MixHopLayer(
                POWERS * hidden_channels if l else in_channels,
                hidden_channels,
                dropout=dropout if l else input_dropout,
            )
            for l in range(layers)
        )
        self.out = Linear(POWERS * hidden_channels, out_channels)

    def forward(self, x: Tensor, normalized: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            normalized: The matrix S, sparse (CSR). Shape: ``(N, N)``.
            nodes: The nodes whose logits are wanted (default: all).
        """
        for layer in self.layers:
            x = torch.relu(layer(x, normalized))
        x = x if nodes is None else x[nodes]
        return self.out(drop(x, self.dropout, self.training))
