"""H2GCN."""

import torch
from torch import Tensor, nn

from dgt.nn.dropout import dropout as drop
from dgt.nn.linear import Linear
from dgt.nn.sparse import SparseLinear, matmul


class H2GCN(nn.Module):
    r"""H2GCN from `"Beyond Homophily in Graph Neural Networks: Current Limitations and Effective
    Designs" <https://arxiv.org/abs/2006.11468>`_:

    .. math::
        \mathbf{R}^{(0)} = \mathrm{ReLU}(\mathbf{X} \mathbf{W}_e), \qquad
        \mathbf{R}^{(k)} = [\bar{\mathbf{A}}_1 \mathbf{R}^{(k-1)} \,\|\,
        \bar{\mathbf{A}}_2 \mathbf{R}^{(k-1)}], \qquad
        \mathbf{Y} = [\mathbf{R}^{(0)} \,\|\, \dots \,\|\, \mathbf{R}^{(K)}] \mathbf{W}_c

    :math:`\bar{\mathbf{A}}_i = \mathbf{D}_i^{-1/2} \mathbf{A}_i \mathbf{D}_i^{-1/2}` joins the
    nodes exactly :math:`i` edges apart, without self-loops.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels of :math:`\mathbf{R}^{(0)}`; each round has twice as many as the
            one before.
        out_channels: Number of classes.
        layers: Number of rounds K.
        dropout: Dropout before the last layer.
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
        self.rounds = layers
        self.dropout = dropout
        self.embed = SparseLinear(in_channels, hidden_channels, dropout=input_dropout)
        self.out = Linear((2 ** (layers + 1) - 1) * hidden_channels, out_channels)

    def forward(
        self, x: Tensor, one_hop: Tensor, two_hop: Tensor, *, nodes: Tensor | None = None
    ) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            one_hop: The normalised adjacency matrix. Shape: ``(N, N)``.
            two_hop: The same of nodes two edges apart, dense or sparse (CSR). Shape: ``(N, N)``.
            nodes: The nodes whose logits are wanted (default: all).
        """
        r = torch.relu(self.embed(x))
        each = [r]
        for _ in range(self.rounds):
            r = torch.cat([matmul(one_hop, r), matmul(two_hop, r)], dim=1)
            each.append(r)
        each = each if nodes is None else [r[nodes] for r in each]
        return self.out(drop(torch.cat(each, dim=1), self.dropout, self.training))
