"""Graph Transformer of Dwivedi and Bresson, with full and with sparse attention."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dgt.baselines.attention import FullAttention
from dgt.nn import Attention as Entries
from dgt.nn import edges
from dgt.nn.dropout import Dropout
from dgt.nn.linear import Linear
from dgt.nn.norm import NORMS
from dgt.nn.sparse import SparseLinear


class SparseAttention(FullAttention):
    r"""Attention of each node over its neighbours and itself: :class:`FullAttention` with
    :math:`j` from :math:`N(i) \cup \{i\}` alone."""

    def forward(  # type: ignore[override]
        self, z: Tensor, joined: Tensor
    ) -> Tensor:
        weights, value = self._attend(z, joined)
        crow, col = joined.crow_indices(), joined.col_indices()
        return self.out(edges.aggregate(crow, col, weights, value).flatten(1))

    def weights(  # type: ignore[override]
        self, z: Tensor, joined: Tensor
    ) -> Tensor:
        """The attention itself, on each edge. Shape: ``(E, M)``."""
        return self._attend(z, joined)[0]

    def _attend(self, z: Tensor, joined: Tensor) -> tuple[Tensor, Tensor]:
        """The weights, and the values of shape ``(N, M, C / M)``."""
        crow, col = joined.crow_indices(), joined.col_indices()
        query, key, value = (t.transpose(0, 1) for t in self._split(z, None))
        scores = edges.products(crow, col, query / query.size(-1) ** 0.5, key)
        return edges.softmax(crow, scores), value


class Block(nn.Module):
    r"""One block of GT, with the norm after each part:

    .. math::
        \hat{\mathbf{h}} = \mathrm{norm}(\mathbf{h} + \mathrm{MHA}(\mathbf{h})), \qquad
        \mathbf{h}' = \mathrm{norm}(\hat{\mathbf{h}} + \mathbf{W}_2 \mathrm{ReLU}(\mathbf{W}_1
        \hat{\mathbf{h}}))
    """

    def __init__(
        self, attention: FullAttention, channels: int, *, norm: str = "batch", dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.attention = attention
        self.dropout = Dropout(dropout)
        self.norm = NORMS[norm](channels)
        self.hidden = nn.Sequential(Linear(channels, 2 * channels), Dropout(dropout, relu=True))
        self.out = Linear(2 * channels, channels, bias=False)
        self.norm_out = NORMS[norm](channels)

    def forward(self, h: Tensor, *where: Tensor) -> Tensor:
        h = self.norm(self.dropout(self.attention(h, *where), plus=h))
        return self.norm_out(self.out(self.hidden(h), plus=h))


class GTFull(nn.Module):
    r"""GT from `"A Generalization of Transformer Networks to Graphs"
    <https://arxiv.org/abs/2012.09699>`_, with attention over all nodes:

    .. math::
        \mathbf{h}^{(0)}_i = \mathbf{W} \mathbf{x}_i + \mathbf{C} \boldsymbol{\lambda}_i, \qquad
        \mathbf{h}^{(l)} = \mathrm{Block}(\mathbf{h}^{(l-1)})

    :math:`\boldsymbol{\lambda}_i` holds the node's values in the Laplacian's eigenvectors, whose
    signs are drawn anew at every step of training. A linear layer makes the logits.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels of every node.
        out_channels: Number of classes.
        blocks: Number of blocks.
        heads: Attention heads.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        dropout: Dropout of hidden channels.
        input_dropout: Dropout of the features.
        laplacian_columns: Number of eigenvectors.
    """

    Attention: type[FullAttention] = FullAttention

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        blocks: int = 1,
        heads: int = 4,
        norm: str = "batch",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        laplacian_columns: int = 16,
    ) -> None:
        super().__init__()
        self.embed = SparseLinear(in_channels, hidden_channels, dropout=input_dropout)
        self.positions = Linear(laplacian_columns, hidden_channels, bias=False)
        self.blocks: Sequence[Block] = nn.ModuleList(  # type: ignore[assignment]
            Block(
                self.Attention(hidden_channels, heads=heads),
                hidden_channels,
                norm=norm,
                dropout=dropout,
            )
            for _ in range(blocks)
        )
        self.head = nn.Sequential(Dropout(dropout), Linear(hidden_channels, out_channels))

    def forward(self, x: Tensor, laplacian: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            laplacian: Eigenvectors. Shape: ``(N, laplacian_columns)``.
            nodes: The nodes whose logits are wanted (default: all).
        """
        return self._logits(x, laplacian, nodes)

    @torch.no_grad()
    def attention(self, x: Tensor, laplacian: Tensor, *, nodes: Tensor | None = None) -> Any:
        """The attention of the last block, of all nodes or of ``nodes``. Shape: ``(M, nodes, N)``.

        Call it in evaluation mode; in training, dropout changes it.
        """
        return self.blocks[-1].attention.weights(self._before_last(x, laplacian), nodes)

    def _logits(self, x: Tensor, laplacian: Tensor, nodes: Tensor | None, *where: Tensor) -> Tensor:
        h = self.blocks[-1](self._before_last(x, laplacian, *where), *where)
        return self.head(h if nodes is None else h[nodes])

    def _before_last(self, x: Tensor, laplacian: Tensor, *where: Tensor) -> Tensor:
        if self.training:
            laplacian = laplacian * (2 * torch.randint(2, (laplacian.size(1),)) - 1)
        h = self.positions(laplacian, plus=self.embed(x))
        for block in self.blocks[:-1]:
            h = block(h, *where)
        return h


class GTSparse(GTFull):
    r""":class:`GTFull` with the attention of each node over its neighbours and itself; takes the
    same arguments."""

    Attention: type[FullAttention] = SparseAttention

    def forward(  # type: ignore[override]
        self, x: Tensor, laplacian: Tensor, joined: Tensor, *, nodes: Tensor | None = None
    ) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            laplacian: Eigenvectors. Shape: ``(N, laplacian_columns)``.
            joined: The adjacency matrix with self-loops, sparse (CSR). Shape: ``(N, N)``.
            nodes: The nodes whose logits are wanted (default: all).
        """
        return self._logits(x, laplacian, nodes, joined)

    @torch.no_grad()
    def attention(  # type: ignore[override]
        self, x: Tensor, laplacian: Tensor, joined: Tensor, *, nodes: Tensor | None = None
    ) -> list[list[Entries]]:
        """The attention of the last block, of all nodes or of ``nodes``, as (node, key, weight) for
        each head, as :meth:`dgt.nn.DGT.attention` gives it.

        Call it in evaluation mode; in training, dropout changes it.
        """
        h = self._before_last(x, laplacian, joined)
        weights = self.blocks[-1].attention.weights(h, joined)  # (E, M)
        node = torch.arange(len(h)).repeat_interleave(joined.crow_indices().diff())
        key = joined.col_indices()
        if nodes is not None:
            wanted = torch.isin(node, nodes)
            node, key, weights = node[wanted], key[wanted], weights[wanted]
        return [[Entries(node, key, head) for head in weights.unbind(dim=1)]]
