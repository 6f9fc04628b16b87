"""dgt-plus: the Deformable Graph Transformer with scores, known labels and degrees."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from dgt.config import ModelConfig
from dgt.nn import rows
from dgt.nn.block import Block
from dgt.nn.level import Level
from dgt.nn.model import (
    Attention,
    attention_entries,
    check_inputs,
    feature_embedding,
    groups_by_decay,
    logits_layer,
)
from dgt.nn.positional import KatzEncoding
from dgt.nn.scored import ScoredGraphAttention, draw_labels
from dgt.ops.deformable_attention.reference import Kernel
from dgt.ops.linear import Linear
from dgt.ops.sparse import Rows


class DGTPlus(nn.Module):
    r"""dgt-plus, an extension of :class:`DGT`:

    .. math::
        \mathbf{z}^{(0)}_i = f_\theta(\mathbf{x}_i) + \mathrm{MLP}(\mathbf{e}_i), \qquad
        \mathbf{z}^{(l)} = \mathrm{Block}(\mathbf{z}^{(l-1)}, \{S_\pi, c_\pi\}_{\pi \in \Pi})

    Its blocks use :class:`ScoredGraphAttention`. Known labels are used in one of two ways:

    * ``"read"``: the values of the last block carry the labels, and its sequences leave out the
      base node. A node thus reads the labels of others, and never its own.
    * ``"hide"``: the labels are part of the input of all blocks. The caller has to hide the labels
      of the nodes whose logits it asks for.

    Args:
        in_channels: Number of features F.
        hidden_channels: Hidden channels C of each node.
        out_channels: Number of classes.
        label_channels: Number of columns of the labels.
        labels: ``"none"``, ``"read"`` or ``"hide"``.
        criteria: Number of criteria T.
        blocks: Number of blocks.
        heads: Number of attention heads M per criterion.
        keys: Number of keys K per head.
        kernel: Interpolation kernel (default: ``Kernel()``).
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        mlp_ratio: Width of a block's MLP as a multiple of ``hidden_channels``.
        dropout: Dropout probability of hidden channels.
        node_dropout: Probability that attention reads a whole node as zero.
        value_dropout: Dropout probability of the channels that attention reads.
        feature_layers: Number of linear layers of :math:`f_\theta`.
        input_dropout: Dropout probability of the features.
        encoding_channels: Number of columns of the encoding :math:`\mathbf{e}`; 0 for none.
        encoding_dropout: Dropout probability of the columns of the encoding.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        label_channels: int = 0,
        labels: str = "none",
        criteria: int = 4,
        blocks: int = 1,
        heads: int = ModelConfig.heads,
        keys: int = ModelConfig.keys,
        kernel: Kernel | None = None,
        norm: str = ModelConfig.norm,
        mlp_ratio: float = ModelConfig.mlp_ratio,
        dropout: float = ModelConfig.dropout,
        node_dropout: float = 0.0,
        value_dropout: float = ModelConfig.value_dropout,
        feature_layers: int = ModelConfig.feature_layers,
        input_dropout: float = ModelConfig.input_dropout,
        encoding_channels: int = 0,
        encoding_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if labels not in ("none", "read", "hide"):
            raise ValueError(f"labels: got {labels!r}, expected 'none', 'read' or 'hide'")
        self.labels = labels
        self.features = feature_embedding(
            in_channels, hidden_channels, feature_layers, norm, input_dropout, dropout
        )
        self.encoding = None
        if encoding_channels:
            self.encoding = KatzEncoding(
                encoding_channels,
                hidden_channels,
                norm=norm,
                dropout=encoding_dropout,
                hidden_dropout=dropout,
            )
        self.known = None
        if labels == "hide":
            self.known = Linear(label_channels, hidden_channels, bias=False)
            draw_labels(self.known)
        self.blocks: Sequence[Block] = nn.ModuleList(  # type: ignore[assignment]
            Block(
                ScoredGraphAttention(
                    hidden_channels,
                    label_channels=label_channels if labels == "read" and l == blocks - 1 else 0,
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
            for l in range(blocks)
        )
        self.head = logits_layer(hidden_channels, out_channels, norm, dropout)

    @torch.no_grad()
    def start_from(self, logits: Tensor) -> None:
        """Sets the logits that training starts from, the same for all nodes. Shape:
        ``(out_channels,)``."""
        cast(Tensor, self.head[-1].bias).copy_(logits)

    def embed(
        self, x: Tensor | Rows, labels: Tensor | None, encoding: Tensor | Rows | None
    ) -> Tensor:
        """Computes the representations :math:`z^{(0)}` before the first block."""
        for name, given, wanted in (
            ("labels", labels, self.known is not None),
            ("encoding", encoding, self.encoding is not None),
        ):
            if wanted and given is None:
                raise ValueError(f"the model was built for {name}, got none")
        z = self.features(x)
        if self.encoding is not None:
            z = self.encoding(z, encoding)
        return z if self.known is None else self.known(labels, plus=z)

    def forward(
        self,
        x: Tensor | Rows,
        sequences: Tensor | Sequence[Level],
        closeness: Tensor | None = None,
        labels: Tensor | None = None,
        encoding: Tensor | Rows | None = None,
        *,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            sequences: Node indices, int32, padded at the end with -1. Shape: ``(T, N, L)``. Or one
                :class:`Level` per block, if each block attends for fewer nodes than the one
                before.
            closeness: The closeness of the nodes in the sequences; levels have their own. Shape:
                ``(T, N, L)``.
            labels: Known labels, see :func:`~dgt.data.labels.label_columns`; 0 for all others.
                Shape: ``(N, label_channels)``.
            encoding: Columns of the encoding, dense or sparse (CSR). Shape: ``(N, N')``.
            nodes: Nodes to return logits for, int64 (default: all).

        Returns:
            Logits of all nodes or of ``nodes``. Shape: ``(N, out_channels)``.
        """
        check_inputs(x, sequences, encoding, nodes)
        levels = self._levels(sequences, closeness, labels, nodes)
        z = rows.each(self.embed, x, labels if self.known is not None else None, encoding)
        for block, level in zip(self.blocks, levels, strict=True):
            z = block(z, level)
        return rows.each(self.head, z, nodes=nodes)

    def _levels(
        self,
        sequences: Tensor | Sequence[Level],
        closeness: Tensor | None,
        labels: Tensor | None,
        nodes: Tensor | None,
    ) -> Sequence[Level]:
        if not isinstance(sequences, Tensor):
            return sequences
        if closeness is None:
            raise ValueError("the model reads the closeness of the nodes in sequences, got none")
        every = Level(sequences, None, closeness)
        last = every if nodes is None else every.take(nodes)
        if self.labels == "read":
            last = last._replace(labels=labels)
        return [every] * (len(self.blocks) - 1) + [last]

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Returns the parameters by the name of the setting that holds their weight decay."""
        attentions = [_attention(block) for block in self.blocks]
        keys = [module for each in attentions for module in (each.query, each.probe)]
        return groups_by_decay(self, self.features, self.encoding, keys)

    @torch.no_grad()
    def attention(
        self,
        x: Tensor,
        sequences: Tensor,
        closeness: Tensor,
        labels: Tensor | None = None,
        encoding: Tensor | None = None,
        *,
        nodes: Tensor | None = None,
        block: int = -1,
    ) -> list[list[Attention]]:
        r"""Returns the attention weights :math:`\hat{w}` of one block for each criterion and head.

        Call it in evaluation mode: in training mode, dropout affects the result.

        Args:
            x: See :meth:`forward`.
            sequences: See :meth:`forward`.
            closeness: See :meth:`forward`.
            labels: See :meth:`forward`.
            encoding: See :meth:`forward`.
            nodes: Nodes to return the attention of, int64 (default: all).
            block: Index of the block (default: the last one).
        """
        chosen = self.blocks[block]
        if nodes is None:
            nodes = torch.arange(sequences.size(1), device=x.device)
        z = self.embed(x, labels, encoding)
        for module, level in zip(
            self.blocks, self._levels(sequences, closeness, labels, None), strict=True
        ):
            if module is chosen:
                break
            z = module(z, level)
        level = level.take(nodes)
        weights = _attention(chosen).weights(chosen.norm(z), level)
        return attention_entries(weights, level.sequences, nodes)


def _attention(block: Block) -> ScoredGraphAttention:
    return cast(ScoredGraphAttention, block.attention)
