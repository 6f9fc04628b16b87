"""Geom-GCN."""

import torch
from torch import Tensor, nn

from dgt.baselines.record import DEFAULTS
from dgt.baselines.structures.latent import RELATIONS
from dgt.config import Config
from dgt.nn.record import Model, builder
from dgt.ops import edges
from dgt.ops.dropout import dropout as drop
from dgt.ops.sparse import SparseLinear, matmul


class GeomLayer(nn.Module):
    """A linear layer per relation, followed by sums over the neighbors in that relation."""

    def __init__(self, in_channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = SparseLinear(in_channels, RELATIONS * out_channels, dropout=dropout)

    def forward(self, h: Tensor, relations: Tensor) -> Tensor:
        """
        Returns:
            Shape: ``(N, R, C)``.
        """
        h = self.linear(h)
        rows = h.view(h.size(0) * RELATIONS, -1)
        return matmul(relations, rows).view(h.size(0), RELATIONS, -1)


class GeomGCN(nn.Module):
    r"""Geom-GCN from `"Geom-GCN: Geometric Graph Convolutional Networks"
    <https://arxiv.org/abs/2002.05287>`_, two layers:

    .. math::
        \mathbf{e}^{(i,r)}_v = \sum_{u \in N_i(v),\, \tau(v,u) = r}
        \frac{\mathbf{W}_{i,r} \mathbf{h}_u}{\sqrt{d_i(v) d_i(u)}}, \qquad
        \mathbf{h}'_v = \mathrm{ReLU}\big( \|_{i,r} \, \mathbf{e}^{(i,r)}_v \big)

    :math:`N_g(v)` are the neighbors of v in the graph, and :math:`N_s(v)` its neighbors in the
    plane into which Isomap embeds the nodes. The relation :math:`\tau` is one of four: the quadrant
    in which u lies as seen from v. The node itself has its own relation. As in the paper, the last
    layer averages over the relations instead of concatenating them. For further details, see
    :func:`dgt.baselines.structures.latent_relations`.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels of each relation.
        out_channels: Number of classes.
        dropout: Dropout probability of hidden channels.
        input_dropout: Dropout probability of the features.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        dropout: float = DEFAULTS["dropout"],
        input_dropout: float = DEFAULTS["input_dropout"],
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.first = GeomLayer(in_channels, hidden_channels, dropout=input_dropout)
        self.last = GeomLayer(RELATIONS * hidden_channels, out_channels)

    def forward(
        self, x: Tensor, latent_relations: Tensor, *, nodes: Tensor | None = None
    ) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            latent_relations: Neighbors by relation, sparse (CSR). Shape: ``(N * R, N * R)``.
            nodes: Nodes to return logits for (default: all).
        """
        h = torch.relu(self.first(x, latent_relations)).flatten(1)
        h = drop(h, self.dropout, self.training)
        out = edges.total(self.last(h, latent_relations), 1) / RELATIONS
        return out if nodes is None else out[nodes]


def _memory(config: Config, nodes: int) -> float:
    """Returns the bytes for all pairwise distances and their products in Isomap."""
    return 4 * 8.0 * nodes**2


MODEL = Model(
    build=builder(GeomGCN, "dropout"),
    inputs=("x", "latent_relations"),
    memory=_memory,
    defaults=DEFAULTS,
)
