"""Graph Transformer (GT) by Dwivedi and Bresson, with full or sparse attention."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from dgt.baselines.attention import FullAttention
from dgt.baselines.record import BLOCKS, DEFAULTS, HEADS, ONE_HEAD, full_attention
from dgt.config import EncodingConfig, ModelConfig
from dgt.nn import Attention as Entries
from dgt.nn.record import Model, builder
from dgt.ops import edges
from dgt.ops.dropout import Dropout
from dgt.ops.linear import Linear
from dgt.ops.norm import NORMS
from dgt.ops.sparse import SparseLinear

_FULL_DEFAULTS = ONE_HEAD | {"norm": "batch"}
_SPARSE_DEFAULTS = DEFAULTS | {"norm": "batch"}


class SparseAttention(FullAttention):
    r"""Attention of each node over its neighbors and itself: :class:`FullAttention` with the sums
    restricted to :math:`j \in N(i) \cup \{i\}`."""

    def forward(  # type: ignore[override]
        self, z: Tensor, joined: Tensor
    ) -> Tensor:
        weights, value = self._attend(z, joined)
        crow, col = joined.crow_indices(), joined.col_indices()
        return self.out(edges.aggregate(crow, col, weights, value).flatten(1))

    def weights(  # type: ignore[override]
        self, z: Tensor, joined: Tensor
    ) -> Tensor:
        """Returns the attention weight of each edge and head. Shape: ``(E, M)``."""
        return self._attend(z, joined)[0]

    def _attend(self, z: Tensor, joined: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the weights, shape ``(E, M)``, and the values, shape ``(N, M, C / M)``."""
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
        self, attention: FullAttention, channels: int, *, norm: str, dropout: float
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

    :math:`\boldsymbol{\lambda}_i` holds the entries of node i in the eigenvectors of the Laplacian,
    whose signs are flipped at random in every training step. A linear layer outputs the logits.

    Args:
        in_channels: Number of features.
        hidden_channels: Hidden channels of each node.
        out_channels: Number of classes.
        blocks: Number of blocks.
        heads: Number of attention heads.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        dropout: Dropout probability of hidden channels.
        input_dropout: Dropout probability of the features.
        laplacian_columns: Number of Laplacian eigenvectors.
    """

    Attention: type[FullAttention] = FullAttention

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        blocks: int = ModelConfig.blocks,
        heads: int = _FULL_DEFAULTS["heads"],
        norm: str = _FULL_DEFAULTS["norm"],
        dropout: float = _FULL_DEFAULTS["dropout"],
        input_dropout: float = _FULL_DEFAULTS["input_dropout"],
        laplacian_columns: int = EncodingConfig.laplacian_columns,
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
            nodes: Nodes to return logits for (default: all).
        """
        return self._logits(x, laplacian, nodes)

    @torch.no_grad()
    def attention(self, x: Tensor, laplacian: Tensor, *, nodes: Tensor | None = None) -> Any:
        """Returns the attention weights of the last block, of all nodes or of ``nodes``.

        Call it in evaluation mode: in training mode, dropout affects the result.

        Returns:
            Shape: ``(M, Q, N)``.
        """
        return self.blocks[-1].attention.weights(self._before_last(x, laplacian), nodes)

    def _logits(self, x: Tensor, laplacian: Tensor, nodes: Tensor | None, *where: Tensor) -> Tensor:
        h = self.blocks[-1](self._before_last(x, laplacian, *where), *where)
        return self.head(h if nodes is None else h[nodes])

    def _before_last(self, x: Tensor, laplacian: Tensor, *where: Tensor) -> Tensor:
        if self.training:
            # Drawn on the CPU, so that the signs are the same on every device.
            signs = 2 * torch.randint(2, (laplacian.size(1),), device="cpu") - 1
            laplacian = laplacian * signs.to(laplacian.device)
        h = self.positions(laplacian, plus=self.embed(x))
        for block in self.blocks[:-1]:
            h = block(h, *where)
        return h


class GTSparse(GTFull):
    """:class:`GTFull` with attention of each node over its neighbors and itself.

    It takes the same arguments, but has more heads by default.
    """

    Attention: type[FullAttention] = SparseAttention

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        heads: int = ModelConfig.heads,
        **settings: Any,
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, heads=heads, **settings)

    def forward(  # type: ignore[override]
        self, x: Tensor, laplacian: Tensor, joined: Tensor, *, nodes: Tensor | None = None
    ) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            laplacian: Eigenvectors. Shape: ``(N, laplacian_columns)``.
            joined: Adjacency matrix with self-loops, sparse (CSR). Shape: ``(N, N)``.
            nodes: Nodes to return logits for (default: all).
        """
        return self._logits(x, laplacian, nodes, joined)

    @torch.no_grad()
    def attention(  # type: ignore[override]
        self, x: Tensor, laplacian: Tensor, joined: Tensor, *, nodes: Tensor | None = None
    ) -> list[list[Entries]]:
        """Returns the attention weights of the last block, of all nodes or of ``nodes``, as (node,
        key, weight) for each head, in the form of :meth:`dgt.nn.DGT.attention`.

        Call it in evaluation mode: in training mode, dropout affects the result.
        """
        h = self._before_last(x, laplacian, joined)
        weights = self.blocks[-1].attention.weights(h, joined)  # (E, M)
        node = torch.arange(len(h), device=h.device)
        node = node.repeat_interleave(joined.crow_indices().diff())
        key = joined.col_indices()
        if nodes is not None:
            wanted = torch.isin(node, nodes)
            node, key, weights = node[wanted], key[wanted], weights[wanted]
        return [[Entries(node, key, head) for head in weights.unbind(dim=1)]]


_SETTINGS = ("blocks", "heads", "norm", "dropout", "laplacian_columns")
FULL = Model(
    build=builder(GTFull, *_SETTINGS),
    inputs=("x", "laplacian"),
    grid=BLOCKS | HEADS,
    memory=full_attention,
    defaults=_FULL_DEFAULTS,
)
SPARSE = Model(
    build=builder(GTSparse, *_SETTINGS),
    inputs=("x", "laplacian", "joined"),
    grid=BLOCKS | HEADS,
    defaults=_SPARSE_DEFAULTS,
)
