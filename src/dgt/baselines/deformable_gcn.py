"""Deformable GCN."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from dgt.baselines.record import DEFAULTS
from dgt.config import ModelConfig
from dgt.nn.record import Model, builder
from dgt.ops import edges
from dgt.ops.dropout import dropout as drop
from dgt.ops.linear import Linear
from dgt.ops.softmax import softmax
from dgt.ops.sparse import SparseLinear, matmul

SMOOTHINGS = 5
"""Number of smoothing steps; there is a latent graph for the raw features and for each step."""
KERNELS = 4
"""Number of kernel vectors of a convolution."""
PLACE = 4
"""Size of a relation vector, including the entry for the node itself."""
NEAR = 1e-6
"""Distance below which two nodes count as being at the same place."""


class DeformableConvolution(nn.Module):
    r"""The deformable graph convolution over one graph:

    .. math::
        \mathbf{y}_v = \sum_{u \in N(v)} \sum_{k=1}^K a_{uvk} \mathbf{W}_k \mathbf{h}_u, \qquad
        a_{uvk} = \mathrm{softmax}_u \, \mathbf{r}_{uv}^\top
        \big(\tilde{\boldsymbol\phi}_k + \Delta_k(\mathbf{e}_v)\big)

    with the relation vector :math:`\mathbf{r}_{uv} = [(\boldsymbol\phi_u - \boldsymbol\phi_v) /
    \|\boldsymbol\phi_u - \boldsymbol\phi_v\| \,\|\, 0]`, and :math:`[\mathbf{0} \,\|\, 1]` for
    :math:`u = v`. The places :math:`\boldsymbol\phi_v = \mathbf{W}_\phi \mathbf{e}_v` and the
    deformations :math:`\Delta_k` of the kernel vectors, a network of two layers, are computed from
    the smoothed features :math:`\mathbf{e}_v`. The kernel vectors
    :math:`\tilde{\boldsymbol\phi}_k` are learned and have length 1. The output is normalized to
    length 1.
    """

    def __init__(self, channels: int, out_channels: int) -> None:
        super().__init__()
        self.deform_bias = nn.Parameter(torch.zeros(channels))
        self.deform_out = Linear(channels, KERNELS * PLACE)
        self.kernels = nn.Parameter(torch.eye(PLACE)[:KERNELS])
        self.values = Linear(channels, KERNELS * out_channels, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_channels))

    def forward(self, h: Tensor, projected: Tensor, crow: Tensor, col: Tensor) -> Tensor:
        """
        Args:
            h: Representations of the nodes. Shape: ``(N, C)``.
            projected: The places of the nodes, concatenated with the first layer of their
                deformations. Shape: ``(N, 3 + C)``.
            crow: Row pointers of the graph in CSR format, int64. Shape: ``(N + 1,)``.
            col: Column indices of the graph in CSR format, int64. Shape: ``(E,)``.

        Returns:
            Shape: ``(N, out_channels)``.
        """
        N = h.size(0)
        places, hidden = projected.split([PLACE - 1, projected.size(1) - PLACE + 1], dim=1)
        deformation = self.deform_out(torch.relu(hidden + self.deform_bias)).view(N, KERNELS, PLACE)
        kernels = F.normalize(self.kernels, dim=1) + deformation  # (N, K, P)

        scores = edges.directional(crow, col, places, kernels, NEAR)
        attention = edges.softmax(crow, scores)  # (E, K)
        values = self.values(h).view(N, KERNELS, -1)
        y = edges.total(edges.aggregate(crow, col, attention, values), 1) + self.bias
        return F.normalize(y, dim=1, eps=1e-8)


class Block(nn.Module):
    r"""Convolutions over all graphs, mixed by weights that each node computes:

    .. math::
        \tilde{\mathbf{h}}_v = \sum_l \mathrm{softmax}_l(\mathbf{z}^\top \mathbf{y}^{(l)}_v) \,
        \mathbf{y}^{(l)}_v
    """

    def __init__(
        self, in_channels: int, channels: int, out_channels: int, *, input_dropout: float
    ) -> None:
        super().__init__()
        # For each graph: the places and the first layer of the deformations.
        self.width = PLACE - 1 + channels
        self.project = SparseLinear(
            in_channels, (SMOOTHINGS + 2) * self.width, dropout=input_dropout, bias=False
        )
        self.convolutions: Sequence[DeformableConvolution] = nn.ModuleList(  # type: ignore[assignment]
            DeformableConvolution(channels, out_channels) for _ in range(SMOOTHINGS + 2)
        )
        self.z = nn.Parameter(torch.ones(out_channels))

    def forward(
        self, h: Tensor, x: Tensor, mean: Tensor, graphs: Sequence[tuple[Tensor, Tensor]]
    ) -> Tensor:
        # Smoothing the features and then applying a linear layer equals smoothing its output, which
        # is smaller. The graph itself and the first latent graph use the features as they are; each
        # further latent graph takes one more smoothing step.
        projected = self.project(x)
        each = []
        for l, (convolution, graph) in enumerate(zip(self.convolutions, graphs, strict=True)):
            if l >= 2:
                projected = matmul(mean, projected)
            own, projected = projected.split([self.width, projected.size(1) - self.width], dim=1)
            each.append(convolution(h, own, *graph))
        y = torch.stack(each)  # (graphs, N, C)
        share = softmax((y * self.z).sum(dim=2).t().contiguous()).t()  # (graphs, N)
        return edges.total(share[..., None] * y, 0)


class DeformableGCN(nn.Module):
    r"""Deformable GCN from `"Deformable Graph Convolutional Networks"
    <https://arxiv.org/abs/2112.14438>`_: convolutions over the graph itself and over latent
    graphs. In a latent graph, the neighbors of a node are the nodes with the nearest features,
    where the features are smoothed by averaging over neighbors 0, 1, ... or 5 times.

    .. math::
        \mathbf{h}^{(0)} = \mathrm{ReLU}(\mathbf{W} \mathbf{x}), \qquad
        \mathbf{h}^{(b)} = \mathrm{ReLU}(\mathbf{h}^{(b-1)} + \mathrm{Block}(\mathbf{h}^{(b-1)}))

    The last block has one channel per class and outputs the logits. As the output of every block,
    they have at most length 1, which keeps the model from becoming overconfident.

    This implementation uses 4 kernel vectors with 4 dimensions, and no loss other than the
    cross-entropy.

    Args:
        in_channels: Number of features.
        hidden_channels: Hidden channels of each node.
        out_channels: Number of classes.
        blocks: Number of blocks.
        dropout: Dropout probability of hidden channels.
        input_dropout: Dropout probability of the features.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        blocks: int = ModelConfig.blocks,
        dropout: float = DEFAULTS["dropout"],
        input_dropout: float = DEFAULTS["input_dropout"],
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.embed = SparseLinear(in_channels, hidden_channels, dropout=input_dropout)
        self.blocks: Sequence[Block] = nn.ModuleList(  # type: ignore[assignment]
            Block(in_channels, hidden_channels, channels, input_dropout=input_dropout)
            for channels in [hidden_channels] * (blocks - 1) + [out_channels]
        )

    def forward(
        self,
        x: Tensor,
        mean: Tensor,
        joined: Tensor,
        smoothed_neighbors: Tensor,
        *,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            mean: Adjacency matrix with rows that sum to 1, sparse (CSR). Shape: ``(N, N)``.
            joined: Adjacency matrix with self-loops, sparse (CSR). Shape: ``(N, N)``.
            smoothed_neighbors: Neighbors in each latent graph, int64. Shape: ``(6, N, k)``.
            nodes: Nodes to return logits for (default: all).
        """
        _, N, k = smoothed_neighbors.shape
        each = torch.arange(N + 1, device=smoothed_neighbors.device) * k
        graphs = [(joined.crow_indices(), joined.col_indices())]
        graphs += [(each, latent.flatten()) for latent in smoothed_neighbors]
        h = torch.relu(self.embed(x))
        for block in self.blocks:
            h = drop(h, self.dropout, self.training)
            y = block(h, x, mean, graphs)
            h = torch.relu(h + y) if block is not self.blocks[-1] else y
        return h if nodes is None else h[nodes]


MODEL = Model(
    build=builder(DeformableGCN, "blocks", "dropout"),
    inputs=("x", "mean", "joined", "smoothed_neighbors"),
    settings=("neighbors",),
    grid={"blocks": (1, 2), "neighbors": (5, 10, 15, 20, 25)},
    defaults=DEFAULTS,
)
