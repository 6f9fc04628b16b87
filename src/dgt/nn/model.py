"""The Deformable Graph Transformer."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dgt.nn.attention import DeformableGraphAttention
from dgt.nn.dropout import Dropout
from dgt.nn.interpolation import Kernel
from dgt.nn.linear import Linear
from dgt.nn.norm import NORMS
from dgt.nn.positional import KatzEncoding
from dgt.nn.sparse import Rows, SparseLinear


class Attention(NamedTuple):
    """Which nodes read which others, entry by entry, for one block, criterion and head."""

    node: Tensor  # int64 (E,), the query
    key: Tensor  # int64 (E,), the node that it reads
    weight: Tensor  # float (E,)


class Block(nn.Module):
    r"""One block of the Deformable Graph Transformer, with the norm before each part:

    .. math::
        \hat{\mathbf{z}} = \mathrm{DGA}(\mathrm{norm}(\mathbf{z})) + \mathbf{z}, \qquad
        \mathbf{z}' = \mathrm{MLP}(\mathrm{norm}(\hat{\mathbf{z}})) + \hat{\mathbf{z}}
    """

    def __init__(
        self,
        attention: DeformableGraphAttention,
        *,
        norm: str = "layer",
        mlp_ratio: float = 1.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        channels = attention.channels
        width = max(1, round(channels * mlp_ratio))
        self.norm = NORMS[norm](channels)
        self.attention = attention
        self.dropout = Dropout(dropout)
        self.hidden = nn.Sequential(
            NORMS[norm](channels),
            Linear(channels, width),
            Dropout(dropout, relu=True),
        )
        self.out = Linear(width, channels, bias=False)

    def forward(self, z: Tensor, sequences: Tensor, nodes: Tensor | None = None) -> Tensor:
        """The representations of all nodes, or of ``nodes`` alone, whose sequences these are."""
        read = self.attention(self.norm(z), sequences, nodes)
        return self.after(read, z if nodes is None else z[nodes])

    def after(self, read: Tensor, z: Tensor) -> Tensor:
        """What follows the attention; each node for itself."""
        z = self.dropout(read, plus=z)
        return self.out(self.hidden(z), plus=z)


class DGT(nn.Module):
    r"""The Deformable Graph Transformer (DGT) from the `"Deformable Graph Transformer"
    <https://arxiv.org/abs/2206.14337>`_ paper:

    .. math::
        \mathbf{z}^{(0)}_i = f_\theta(\mathbf{x}_i) + \mathrm{KatzPE}(v_i), \qquad
        \mathbf{z}^{(l)} = \mathrm{Block}(\mathbf{z}^{(l-1)}, \{S_\pi\}_{\pi \in \Pi})

    followed by a norm and a linear layer to the logits. With one criterion it is DGT-light.

    Args:
        in_channels: Number of features F.
        hidden_channels: Channels C of every node.
        out_channels: Number of classes.
        criteria: Number of criteria T.
        blocks: Number of blocks.
        heads: Attention heads M for each criterion.
        keys: Keys K for each head.
        kernel: The interpolation kernel.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        mlp_ratio: Width of a block's MLP as a multiple of ``hidden_channels``.
        dropout: Dropout of hidden channels.
        node_dropout: Dropout of whole nodes among those that attention reads.
        value_dropout: Dropout of the channels that attention reads.
        feature_layers: Linear layers of :math:`f_\theta`, with norm, ReLU and dropout between them.
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
        criteria: int = 3,
        blocks: int = 1,
        heads: int = 4,
        keys: int = 4,
        kernel: Kernel | None = None,
        norm: str = "layer",
        mlp_ratio: float = 1.0,
        dropout: float = 0.0,
        node_dropout: float = 0.0,
        value_dropout: float = 0.0,
        feature_layers: int = 1,
        input_dropout: float = 0.0,
        encoding_channels: int = 0,
        encoding_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.features = nn.Sequential(
            SparseLinear(in_channels, hidden_channels, dropout=input_dropout)
        )
        for _ in range(feature_layers - 1):
            self.features.append(NORMS[norm](hidden_channels))
            self.features.append(Dropout(dropout, relu=True))
            self.features.append(Linear(hidden_channels, hidden_channels))
        self.encoding = (
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
            Block(
                DeformableGraphAttention(
                    hidden_channels,
                    criteria=criteria,
                    heads=heads,
                    keys=keys,
                    kernel=kernel,
                    dropout=node_dropout,
                    value_dropout=value_dropout,
                ),
                norm=norm,
                mlp_ratio=mlp_ratio,
                dropout=dropout,
            )
            for _ in range(blocks)
        )
        self.head = nn.Sequential(
            NORMS[norm](hidden_channels),
            Dropout(dropout),
            Linear(hidden_channels, out_channels),
        )

    def embed(self, x: Tensor | Rows, encoding: Tensor | Rows | None = None) -> Tensor:
        """The representations :math:`z^{(0)}` before the first block."""
        if (encoding is None) != (self.encoding is None):
            wants = "none" if self.encoding is None else "one"
            raise ValueError(f"the model was built for {wants} positional encoding, got {encoding}")
        z = self.features(x)
        return z if self.encoding is None else self.encoding(z, encoding)

    def forward(
        self,
        x: Tensor,
        sequences: Tensor,
        encoding: Tensor | None = None,
        *,
        nodes: Tensor | None = None,
        way: Callable[..., Tensor] | None = None,
    ) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            sequences: Node indices, int32, padded at the end with -1. Shape: ``(T, N, L)``.
            encoding: Katz rows, dense or sparse (CSR). Shape: ``(N, N')``.
            nodes: The nodes whose logits are wanted, int64; the last block then works for them
                alone. By default all.
            way: Does the work instead, in less memory (:mod:`dgt.nn.bounded`); called with the
                model and these arguments.

        Returns:
            Logits. Shape: ``(N, out_channels)``, or a row for each of ``nodes``.
        """
        if way is not None:
            return way(self, x, sequences, encoding, nodes)
        z = self.embed(x, encoding)
        for block in self.blocks[:-1]:
            z = block(z, sequences)
        if nodes is not None:
            sequences = sequences[:, nodes]
        return self.head(self.blocks[-1](z, sequences, nodes))

    @torch.no_grad()
    def attention(
        self,
        x: Tensor,
        sequences: Tensor,
        encoding: Tensor | None = None,
        *,
        nodes: Tensor | None = None,
        block: int = -1,
    ) -> list[list[Attention]]:
        r"""The attention of one block, as (node, key, weight) for each criterion and head, with
        :math:`w_i = \sum_k \mathbf{A}_{\pi mqk} \cdot g(\Delta p_{\pi mqk}, i)`, of all nodes or of
        ``nodes``, int64, alone. A key that stands at several positions of a sequence has an entry
        for each.

        Call it in evaluation mode; in training, dropout changes it.
        """
        chosen = self.blocks[block]
        z = self.embed(x, encoding)
        for module in self.blocks:
            if module is chosen:
                break
            z = module(z, sequences)
        if nodes is None:
            nodes = torch.arange(len(z))
        of_nodes = sequences[:, nodes]
        weights = chosen.attention.weights(chosen.norm(z)[nodes], of_nodes)  # (Q, T, M, L)
        result = []
        for t, sequence in enumerate(of_nodes):
            heads = []
            for m in range(weights.size(2)):
                query, position = weights[:, t, m].nonzero(as_tuple=True)
                key = sequence[query, position].long()
                heads.append(Attention(nodes[query], key, weights[query, t, m, position]))
            result.append(heads)
        return result


class DGTLight(DGT):
    """:class:`DGT` with a single criterion; takes the same arguments but for ``criteria``."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, **settings: Any
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, criteria=1, **settings)
