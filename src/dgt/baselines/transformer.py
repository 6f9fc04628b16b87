"""Transformer with full attention."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dgt.baselines.attention import Bias, FullAttention
from dgt.nn.dropout import Dropout
from dgt.nn.linear import Linear
from dgt.nn.norm import NORMS
from dgt.nn.positional import KatzEncoding
from dgt.nn.sparse import SparseLinear


class Block(nn.Module):
    r"""A block of a Transformer, with the norm before each part as in DGT's:

    .. math::
        \hat{\mathbf{z}} = \mathrm{MHA}(\mathrm{norm}(\mathbf{z})) + \mathbf{z}, \qquad
        \mathbf{z}' = \mathrm{MLP}(\mathrm{norm}(\hat{\mathbf{z}})) + \hat{\mathbf{z}}
    """

    def __init__(
        self,
        channels: int,
        *,
        heads: int = 4,
        norm: str = "layer",
        mlp_ratio: float = 1.0,
        dropout: float = 0.0,
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
        """The representations of all nodes, or of ``nodes`` alone."""
        read = self.attention(self.norm(z), nodes, bias)
        z = self.dropout(read, plus=z if nodes is None else z[nodes])
        return self.out(self.hidden(z), plus=z)


class Transformer(nn.Module):
    r"""The encoder of `"Attention Is All You Need" <https://arxiv.org/abs/1706.03762>`_ over the
    nodes of a graph:

    .. math::
        \mathbf{z}^{(0)}_i = \mathbf{W} \mathbf{x}_i + \mathrm{PE}(v_i), \qquad
        \mathbf{z}^{(l)} = \mathrm{Block}(\mathbf{z}^{(l-1)})

    followed by a norm and a linear layer to the logits. The positional encoding is that of
    :class:`dgt.nn.DGT`, or none.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels C of every node.
        out_channels: Number of classes.
        blocks: Number of blocks.
        heads: Attention heads.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        mlp_ratio: Width of a block's MLP as a multiple of ``hidden_channels``.
        dropout: Dropout of hidden channels.
        input_dropout: Dropout of the features.
        encoding_channels: Columns of the positional encoding; 0 leaves it out.
        encoding_dropout: Dropout of the positional encoding's columns.
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
        encoding_channels: int = 0,
        encoding_dropout: float = 0.0,
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
            nodes: The nodes whose logits are wanted; the last block then works for them alone
                (default: all).
        """
        z = self._before_last(x, encoding)
        return self.head(self.blocks[-1](z, nodes))

    @torch.no_grad()
    def attention(
        self, x: Tensor, encoding: Tensor | None = None, *, nodes: Tensor | None = None
    ) -> Tensor:
        """The attention of the last block, of all nodes or of ``nodes``. Shape: ``(M, nodes, N)``.

        Call it in evaluation mode; in training, dropout changes it.
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
