"""Graph Convolutional Network."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from dgt.nn.sparse import SparseLinear, matmul


class GCNLayer(GCNConv):
    """PyG's layer with dropout of its input, which may be sparse, on a normalised adjacency
    matrix."""

    def __init__(self, in_channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__(in_channels, out_channels, normalize=False)
        self.lin = SparseLinear(in_channels, out_channels, dropout=dropout, bias=False)

    def message_and_aggregate(self, adj_t: Tensor, x: Tensor) -> Tensor:
        return matmul(adj_t, x)


class GCN(nn.Module):
    r"""GCN from `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_:

    .. math::
        \mathbf{H}^{(l)} = \mathrm{ReLU}(\mathbf{S} \mathbf{H}^{(l-1)} \mathbf{W}^{(l)}), \qquad
        \mathbf{S} = \mathbf{D}^{-1/2} (\mathbf{A} + \mathbf{I}) \mathbf{D}^{-1/2}

    whose last layer has no ReLU.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels between layers.
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
        widths = [in_channels, *[hidden_channels] * (layers - 1), out_channels]
        self.layers: Sequence[GCNLayer] = nn.ModuleList(  # type: ignore[assignment]
            GCNLayer(widths[l], widths[l + 1], dropout=dropout if l else input_dropout)
            for l in range(layers)
        )

    def forward(self, x: Tensor, normalized: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            normalized: The matrix S, sparse (CSR). Shape: ``(N, N)``.
            nodes: The nodes whose logits are wanted (default: all).
        """
        for l, layer in enumerate(self.layers):
            x = layer(torch.relu(x) if l else x, normalized)
        return x if nodes is None else x[nodes]
