"""A network that sees each node's features alone."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dgt.nn.sparse import SparseLinear


class MLP(nn.Module):
    r"""The multilayer perceptron

    .. math::
        \mathbf{h}^{(l)}_i = \mathrm{ReLU}(\mathbf{W}^{(l)} \mathbf{h}^{(l-1)}_i +
        \mathbf{b}^{(l)}), \qquad \mathbf{h}^{(0)}_i = \mathbf{x}_i

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
        self.layers: Sequence[SparseLinear] = nn.ModuleList(  # type: ignore[assignment]
            SparseLinear(widths[l], widths[l + 1], dropout=dropout if l else input_dropout)
            for l in range(layers)
        )

    def forward(self, x: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """The logits of all nodes, or of ``nodes``; ``x`` is dense or sparse (CSR)."""
        for l, layer in enumerate(self.layers):
            x = layer(torch.relu(x) if l else x)
        return x if nodes is None else x[nodes]
