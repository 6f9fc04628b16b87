"""Graphormer."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dgt.baselines.transformer import Block
from dgt.nn import edges
from dgt.nn.dropout import Dropout
from dgt.nn.linear import Linear
from dgt.nn.norm import NORMS
from dgt.nn.sparse import SparseLinear

MAX_DEGREE = 511
MAX_DISTANCE = 20
"""Longer paths are as these; one more stands for no path."""


class Graphormer(nn.Module):
    r"""Graphormer from `"Do Transformers Really Perform Bad for Graph Representation?"
    <https://arxiv.org/abs/2106.05234>`_, without edge features:

    .. math::
        \mathbf{z}^{(0)}_i = \mathbf{W} \mathbf{x}_i + \mathbf{d}_{\deg(v_i)}, \qquad
        \mathbf{A}_{ij} = \frac{(\mathbf{Q} \mathbf{z}_i)^\top \mathbf{K} \mathbf{z}_j}{\sqrt{C/M}}
        + b_{\phi(v_i, v_j)}

    The centrality encoding :math:`\mathbf{d}` is learned for each degree, the bias :math:`b` for
    each length :math:`\phi` of the shortest path between two nodes and each head, the same in all
    blocks. Blocks are those of a Transformer, with the norm before each part.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels C of every node.
        out_channels: Number of classes.
        blocks: Number of blocks.
        heads: Attention heads M.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        mlp_ratio: Width of a block's MLP as a multiple of ``hidden_channels``.
        dropout: Dropout of hidden channels.
        input_dropout: Dropout of the features.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        blocks: int = 1,
        heads: int = 4,
        norm: str = "layer",
        mlp_ratio: float = 1.0,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed = SparseLinear(in_channels, hidden_channels, dropout=input_dropout)
        self.centrality = nn.Parameter(0.02 * torch.randn(MAX_DEGREE + 1, hidden_channels))
        self.bias = nn.Parameter(0.02 * torch.randn(heads, MAX_DISTANCE + 2))
        self.blocks: Sequence[Block] = nn.ModuleList(  # type: ignore[assignment]
            Block(hidden_channels, heads=heads, norm=norm, mlp_ratio=mlp_ratio, dropout=dropout)
            for _ in range(blocks)
        )
        self.head = nn.Sequential(
            NORMS[norm](hidden_channels), Dropout(dropout), Linear(hidden_channels, out_channels)
        )

    def forward(
        self, x: Tensor, degrees: Tensor, distances: Tensor, *, nodes: Tensor | None = None
    ) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            degrees: Number of neighbours, int64. Shape: ``(N,)``.
            distances: Edges on the shortest paths, uint8, at most 20, and 21 for no path. Shape:
                ``(N, N)``.
            nodes: The nodes whose logits are wanted; the last block then works for them alone
                (default: all).
        """
        z = self._embedded(x, degrees)
        for block in self.blocks[:-1]:
            z = block(z, None, (self.bias, distances))
        rows = distances if nodes is None else distances[nodes]
        return self.head(self.blocks[-1](z, nodes, (self.bias, rows)))

    @torch.no_grad()
    def attention(
        self, x: Tensor, degrees: Tensor, distances: Tensor, *, nodes: Tensor | None = None
    ) -> Tensor:
        """The attention of the last block, of all nodes or of ``nodes``. Shape: ``(M, nodes, N)``.

        Call it in evaluation mode; in training, dropout changes it.
        """
        z = self._embedded(x, degrees)
        for block in self.blocks[:-1]:
            z = block(z, None, (self.bias, distances))
        last = self.blocks[-1]
        rows = distances if nodes is None else distances[nodes]
        return last.attention.weights(last.norm(z), nodes, (self.bias, rows))

    def _embedded(self, x: Tensor, degrees: Tensor) -> Tensor:
        return self.embed(x) + edges.gather(self.centrality, degrees.clamp(max=MAX_DEGREE))
