"""Graphormer."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dgt.baselines.record import BLOCKS, HEADS, ONE_HEAD
from dgt.baselines.transformer import Block
from dgt.config import Config, ModelConfig
from dgt.nn.record import Model, builder
from dgt.ops import edges
from dgt.ops.dropout import Dropout
from dgt.ops.linear import Linear
from dgt.ops.norm import NORMS
from dgt.ops.sparse import SparseLinear

MAX_DEGREE = 511
"""Higher degrees share the encoding of this one."""
MAX_DISTANCE = 20
"""Longer paths share the bias of this length; ``MAX_DISTANCE + 1`` means that there is no path."""


class Graphormer(nn.Module):
    r"""Graphormer from `"Do Transformers Really Perform Bad for Graph Representation?"
    <https://arxiv.org/abs/2106.05234>`_, without edge features:

    .. math::
        \mathbf{z}^{(0)}_i = \mathbf{W} \mathbf{x}_i + \mathbf{d}_{\deg(v_i)}, \qquad
        \mathbf{A}_{ij} = \frac{(\mathbf{Q} \mathbf{z}_i)^\top \mathbf{K} \mathbf{z}_j}{\sqrt{C/M}}
        + b_{\phi(v_i, v_j)}

    The centrality encoding :math:`\mathbf{d}` is learned for each degree. The bias :math:`b` is
    learned for each head and each length :math:`\phi` of the shortest path between two nodes, and
    shared by all blocks. The blocks are those of :class:`~dgt.baselines.transformer.Transformer`.

    Args:
        in_channels: Number of features.
        hidden_channels: Hidden channels C of each node.
        out_channels: Number of classes.
        blocks: Number of blocks.
        heads: Number of attention heads M.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        mlp_ratio: Width of a block's MLP as a multiple of ``hidden_channels``.
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
        heads: int = ONE_HEAD["heads"],
        norm: str = ModelConfig.norm,
        mlp_ratio: float = ModelConfig.mlp_ratio,
        dropout: float = ONE_HEAD["dropout"],
        input_dropout: float = ONE_HEAD["input_dropout"],
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
            degrees: Number of neighbors of each node, int64. Shape: ``(N,)``.
            distances: Lengths of the shortest paths, uint8, at most 20; 21 if there is no path.
                Shape: ``(N, N)``.
            nodes: Nodes to return logits for; the last block then attends only for them (default:
                all).
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
        """Returns the attention weights of the last block, of all nodes or of ``nodes``.

        Call it in evaluation mode: in training mode, dropout affects the result.

        Returns:
            Shape: ``(M, Q, N)``.
        """
        z = self._embedded(x, degrees)
        for block in self.blocks[:-1]:
            z = block(z, None, (self.bias, distances))
        last = self.blocks[-1]
        rows = distances if nodes is None else distances[nodes]
        return last.attention.weights(last.norm(z), nodes, (self.bias, rows))

    def _embedded(self, x: Tensor, degrees: Tensor) -> Tensor:
        return self.embed(x) + edges.gather(self.centrality, degrees.clamp(max=MAX_DEGREE))


def _memory(config: Config, nodes: int) -> float:
    """Returns the bytes for all pairwise distances and the rows of training and validation
    nodes."""
    return 3.0 * nodes**2


MODEL = Model(
    build=builder(Graphormer, "blocks", "heads", "norm", "dropout", "mlp_ratio"),
    inputs=("x", "degrees", "distances"),
    grid=BLOCKS | HEADS,
    memory=_memory,
    defaults=ONE_HEAD,
)
