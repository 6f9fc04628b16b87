"""H2GCN."""

import torch
from torch import Tensor, nn

from dgt.baselines.record import DEFAULTS
from dgt.config import Config, ModelConfig
from dgt.nn.record import Model, builder
from dgt.ops.dropout import dropout as drop
from dgt.ops.linear import Linear
from dgt.ops.sparse import SparseLinear, matmul

_DEFAULTS = DEFAULTS | {"input_dropout": 0.0}


class H2GCN(nn.Module):
    r"""H2GCN from `"Beyond Homophily in Graph Neural Networks: Current Limitations and Effective
    Designs" <https://arxiv.org/abs/2006.11468>`_:

    .. math::
        \mathbf{R}^{(0)} = \mathrm{ReLU}(\mathbf{X} \mathbf{W}_e), \qquad
        \mathbf{R}^{(k)} = [\bar{\mathbf{A}}_1 \mathbf{R}^{(k-1)} \,\|\,
        \bar{\mathbf{A}}_2 \mathbf{R}^{(k-1)}], \qquad
        \mathbf{Y} = [\mathbf{R}^{(0)} \,\|\, \dots \,\|\, \mathbf{R}^{(K)}] \mathbf{W}_c

    :math:`\bar{\mathbf{A}}_i = \mathbf{D}_i^{-1/2} \mathbf{A}_i \mathbf{D}_i^{-1/2}` connects
    the nodes at distance :math:`i`, without self-loops.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels of :math:`\mathbf{R}^{(0)}`; each round doubles
            them.
        out_channels: Number of classes.
        layers: Number of rounds K.
        dropout: Dropout probability before the last layer.
        input_dropout: Dropout probability of the features.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        layers: int = ModelConfig.layers,
        dropout: float = _DEFAULTS["dropout"],
        input_dropout: float = _DEFAULTS["input_dropout"],
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
            one_hop: Normalized adjacency matrix, sparse (CSR). Shape: ``(N, N)``.
            two_hop: The same for nodes at distance 2, dense or sparse (CSR). Shape: ``(N, N)``.
            nodes: Nodes to return logits for (default: all).
        """
        r = torch.relu(self.embed(x))
        each = [r]
        for _ in range(self.rounds):
            r = torch.cat([matmul(one_hop, r), matmul(two_hop, r)], dim=1)
            each.append(r)
        each = each if nodes is None else [r[nodes] for r in each]
        return self.out(drop(torch.cat(each, dim=1), self.dropout, self.training))


def _memory(config: Config, nodes: int) -> float:
    """Returns the bytes for the pairs of nodes at distance 2, which may be most pairs, and for
    computing them."""
    return 3 * 12.0 * nodes**2


MODEL = Model(
    build=builder(H2GCN, "layers", "dropout"),
    inputs=("x", "one_hop", "two_hop"),
    grid={"layers": (1, 2)},
    memory=_memory,
    defaults=_DEFAULTS,
)
