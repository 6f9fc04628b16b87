"""Transformer with full attention."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dgt.baselines.attention import Bias, FullAttention
from dgt.baselines.record import BLOCKS, HEADS, ONE_HEAD, full_attention
from dgt.config import ModelConfig
from dgt.nn.positional import KatzEncoding
from dgt.nn.record import Model, builder
from dgt.ops.dropout import Dropout
from dgt.ops.linear import Linear
from dgt.ops.norm import NORMS
from dgt.ops.sparse import SparseLinear


class Block(nn.Module):
    r"""A pre-norm Transformer block, as in DGT but with full attention:

    .. math::
        \hat{\mathbf{z}} = \mathrm{MHA}(\mathrm{norm}(\mathbf{z})) + \mathbf{z}, \qquad
        \mathbf{z}' = \mathrm{MLP}(\mathrm{norm}(\hat{\mathbf{z}})) + \hat{\mathbf{z}}
    """

    def __init__(
        self,
        channels: int,
        *,
        heads: int,
        norm: str,
        mlp_ratio: float,
        dropout: float,
    ) -> None:
        super().__init__()
        width = max(1, round(channels * mlp_ratio))
        self.norm = NORMS[norm](channels)
        self.attention = FullAttention(channels, heads=heads)
        self.dropout = Dropout(dropout)
        self.hidden = nn.Sequential(
            NORMS[norm](channels), Linear(channels, width), Dropout(dropout, relu=True)
        )
        self.out = Linear(width, channels, bias=False)

    def forward(self, z: Tensor, nodes: Tensor | None = None, bias: Bias | None = None) -> Tensor:
        """Returns the new representations of all nodes or of ``nodes``."""
        read = self.attention(self.norm(z), nodes, bias)
        z = self.dropout(read, plus=z if nodes is None else z[nodes])
        return self.out(self.hidden(z), plus=z)


class Transformer(nn.Module):
    r"""The encoder of `"Attention Is All You Need" <https://arxiv.org/abs/1706.03762>`_ over the
    nodes of a graph:

    .. math::
        \mathbf{z}^{(0)}_i = \mathbf{W} \mathbf{x}_i + \mathrm{PE}(v_i), \qquad
        \mathbf{z}^{(l)} = \mathrm{Block}(\mathbf{z}^{(l-1)})

    followed by a norm and a linear layer that outputs the logits. The positional encoding is that
    of :class:`dgt.nn.DGT` and is optional.

    Args:
        in_channels: Number of features.
        hidden_channels: Hidden channels C of each node.
        out_channels: Number of classes.
        blocks: Number of blocks.
        heads: Number of attention heads.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        mlp_ratio: Width of a block's MLP as a multiple of ``hidden_channels``.
        dropout: Dropout probability of hidden channels.
        input_dropout: Dropout probability of the features.
        encoding_channels: Number of columns of the positional encoding; 0 for none.
        encoding_dropout: Dropout probability of the columns of the positional encoding.
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
        encoding_channels: int = 0,
        encoding_dropout: float = ModelConfig.encoding_dropout,
    ) -> None:
        super().__init__()
        self.embed = SparseLinear(in_channels, hidden_channels, dropout=input_dropout)
        self.positions = (
            KatzEncoding(
                encoding_channels,
                hidden_channels,
                norm=norm,
                dropout=encoding_dropout,
                hidden_dropout=dropout,
            )
            if encoding_channels
            else None
        )
        self.blocks: Sequence[Block] = nn.ModuleList(  # type: ignore[assignment]
            Block(hidden_channels, heads=heads, norm=norm, mlp_ratio=mlp_ratio, dropout=dropout)
            for _ in range(blocks)
        )
        self.head = nn.Sequential(
            NORMS[norm](hidden_channels), Dropout(dropout), Linear(hidden_channels, out_channels)
        )

    def forward(
        self, x: Tensor, encoding: Tensor | None = None, *, nodes: Tensor | None = None
    ) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            encoding: Columns of the positional encoding, dense or sparse (CSR). Shape: ``(N, N')``.
            nodes: Nodes to return logits for; the last block then attends only for them (default:
                all).
        """
        z = self._before_last(x, encoding)
        return self.head(self.blocks[-1](z, nodes))

    @torch.no_grad()
    def attention(
        self, x: Tensor, encoding: Tensor | None = None, *, nodes: Tensor | None = None
    ) -> Tensor:
        """Returns the attention weights of the last block, of all nodes or of ``nodes``.

        Call it in evaluation mode: in training mode, dropout affects the result.

        Returns:
            Shape: ``(M, Q, N)``.
        """
        last = self.blocks[-1]
        return last.attention.weights(last.norm(self._before_last(x, encoding)), nodes)

    def _before_last(self, x: Tensor, encoding: Tensor | None) -> Tensor:
        z = self.embed(x)
        if self.positions is not None:
            z = self.positions(z, encoding)
        for block in self.blocks[:-1]:
            z = block(z)
        return z


MODEL = Model(
    build=builder(
        Transformer,
        "blocks",
        "heads",
        "norm",
        "dropout",
        "encoding_channels",
        "encoding_dropout",
        "mlp_ratio",
    ),
    inputs=("x", "encoding"),
    grid=BLOCKS | HEADS,
    memory=full_attention,
    defaults=ONE_HEAD,
)
