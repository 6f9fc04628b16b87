"""GraphSAGE."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv

from dgt.nn.sparse import SparseLinear, matmul


class SAGELayer(SAGEConv):
    """PyG's layer with dropout of its input, which may be sparse: so the linear layers come before
    the mean and not after it, to the same result."""

    def __init__(self, in_channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__(in_channels, out_channels)
        self.lin_l = SparseLinear(in_channels, out_channels, dropout=dropout, bias=False)
        self.lin_r = SparseLinear(in_channels, out_channels, dropout=dropout)

    def forward(self, x: Tensor, mean: Tensor) -> Tensor:
        return matmul(mean, self.lin_l(x)) + self.lin_r(x)


class GraphSAGE(nn.Module):
    r"""GraphSAGE from `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_, with the mean of all neighbours:

    .. math::
        \mathbf{h}^{(l)}_i = \mathrm{ReLU}\Big(\mathbf{W}^{(l)}_1 \mathbf{h}^{(l-1)}_i +
        \mathbf{W}^{(l)}_2 \cdot \mathrm{mean}_{j \in N(i)} \mathbf{h}^{(l-1)}_j\Big)

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
        self.layers: Sequence[SAGELayer] = nn.ModuleList(  # type: ignore[assignment]
            SAGELayer(widths[l], widths[l + 1], dropout=dropout if l else input_dropout)
            for l in range(layers)
        )

    def forward(self, x: Tensor, mean: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            mean: The adjacency matrix, each row divided by its sum, sparse (CSR). Shape:
                ``(N, N)``.
            nodes: The nodes whose logits are wanted (default: all).
        """
        for l, layer in enumerate(self.layers):
            x = layer(torch.relu(x) if l else x, mean)
        return x if nodes is None else x[nodes]
