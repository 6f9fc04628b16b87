"""Geom-GCN."""

import torch
from torch import Tensor, nn

from dgt.nn import edges
from dgt.nn.dropout import dropout as drop
from dgt.nn.sparse import SparseLinear, matmul
from dgt.structures.latent import RELATIONS


class GeomLayer(nn.Module):
    """Sums over the neighbours in each relation, after a linear layer for each."""

    def __init__(self, in_channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear = SparseLinear(in_channels, RELATIONS * out_channels, dropout=dropout)

    def forward(self, h: Tensor, relations: Tensor) -> Tensor:
        """Shape: ``(N, R, C)``."""
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

    where :math:`N_g(v)` are v's neighbours in the graph, :math:`N_s(v)` those in a plane into which
    Isomap lays the nodes, and the relation :math:`\tau` one of four: the quadrant in which u lies,
    seen from v. The node itself has a relation of its own. The last layer takes the mean over the
    relations in place of joining them, as in the paper. :func:`dgt.structures.latent_relations`
    has the rest of what is settled here.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels of each relation.
        out_channels: Number of classes.
        dropout: Dropout of hidden channels.
        input_dropout: Dropout of the features.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
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
            latent_relations: Neighbours by relation, sparse (CSR). Shape: ``(N R, N R)``.
            nodes: The nodes whose logits are wanted (default: all).
        """
        h = torch.relu(self.first(x, latent_relations)).flatten(1)
        h = drop(h, self.dropout, self.training)
        out = edges.total(self.last(h, latent_relations), 1) / RELATIONS
        return out if nodes is None else out[nodes]
