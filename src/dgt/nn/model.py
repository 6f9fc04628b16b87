"""The Deformable Graph Transformer."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from dgt.config import ModelConfig
from dgt.config.checks import require_count
from dgt.nn import rows
from dgt.nn.attention import DeformableGraphAttention
from dgt.nn.block import Block
from dgt.nn.level import Level
from dgt.nn.positional import KatzEncoding
from dgt.ops.checks import check_all
from dgt.ops.deformable_attention.reference import Kernel
from dgt.ops.dropout import Dropout
from dgt.ops.linear import Linear
from dgt.ops.norm import NORMS
from dgt.ops.sparse import Parts, Rows, SparseLinear
from dgt.ops.sparse.rows import ROWS_TAKES


class Attention(NamedTuple):
    """Attention weights of one block, criterion and head, as a list of entries."""

    node: Tensor  # int64 (E,), the node that attends
    key: Tensor  # int64 (E,), the node that it attends to
    weight: Tensor  # float (E,)


class DGT(nn.Module):
    r"""The Deformable Graph Transformer (DGT) from the `"Deformable Graph Transformer"
    <https://arxiv.org/abs/2206.14337>`_ paper:

    .. math::
        \mathbf{z}^{(0)}_i = f_\theta(\mathbf{x}_i) + \mathrm{KatzPE}(v_i), \qquad
        \mathbf{z}^{(l)} = \mathrm{Block}(\mathbf{z}^{(l-1)}, \{S_\pi\}_{\pi \in \Pi})

    followed by a norm and a linear layer that outputs the logits. With a single criterion, the
    model is DGT-light.

    Args:
        in_channels: Number of features F.
        hidden_channels: Hidden channels C of each node.
        out_channels: Number of classes.
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
        feature_layers: Number of linear layers of :math:`f_\theta`, with norm, ReLU and dropout in
            between.
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
        criteria: int = 3,
        blocks: int = ModelConfig.blocks,
        heads: int = ModelConfig.heads,
        keys: int = ModelConfig.keys,
        kernel: Kernel | None = None,
        norm: str = ModelConfig.norm,
        mlp_ratio: float = ModelConfig.mlp_ratio,
        dropout: float = ModelConfig.dropout,
        node_dropout: float = ModelConfig.node_dropout,
        value_dropout: float = ModelConfig.value_dropout,
        feature_layers: int = ModelConfig.feature_layers,
        input_dropout: float = ModelConfig.input_dropout,
        encoding_channels: int = 0,
        encoding_dropout: float = ModelConfig.encoding_dropout,
    ) -> None:
        super().__init__()
        counts = {"in_channels": in_channels, "out_channels": out_channels, "criteria": criteria}
        for name, count in counts.items():
            require_count(name, count)
        require_count("encoding_channels", encoding_channels, least=0)
        ModelConfig(
            hidden_channels=hidden_channels,
            blocks=blocks,
            heads=heads,
            keys=keys,
            norm=norm,  # type: ignore[arg-type]
            mlp_ratio=mlp_ratio,
            dropout=dropout,
            node_dropout=node_dropout,
            value_dropout=value_dropout,
            feature_layers=feature_layers,
            input_dropout=input_dropout,
            encoding_dropout=encoding_dropout,
        )
        self.features = feature_embedding(
            in_channels, hidden_channels, feature_layers, norm, input_dropout, dropout
        )
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
        self.head = logits_layer(hidden_channels, out_channels, norm, dropout)

    def embed(self, x: Tensor | Rows, encoding: Tensor | Rows | None = None) -> Tensor:
        """Computes the representations :math:`z^{(0)}` before the first block."""
        if (encoding is None) != (self.encoding is None):
            wanted, got = ("no", "one") if self.encoding is None else ("a", "none")
            raise ValueError(f"the model was built for {wanted} positional encoding, got {got}")
        z = self.features(x)
        return z if self.encoding is None else self.encoding(z, encoding)

    def forward(
        self,
        x: Tensor | Rows,
        sequences: Tensor | Sequence[Level],
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
            encoding: Columns of the positional encoding, dense or sparse (CSR). Shape:
                ``(N, N')``.
            nodes: Nodes to return logits for, int64; the last block then attends only for them
                (default: all).

        Returns:
            Logits of all nodes or of ``nodes``. Shape: ``(N, out_channels)``.
        """
        check_inputs(x, sequences, encoding, nodes)
        z = rows.each(self.embed, x, encoding)
        for block, level in zip(self.blocks, self._levels(sequences, nodes), strict=True):
            z = block(z, level)
        return rows.each(self.head, z, nodes=nodes)

    def _levels(self, sequences: Tensor | Sequence[Level], nodes: Tensor | None) -> Sequence[Level]:
        if not isinstance(sequences, Tensor):
            return sequences
        every = Level(sequences)
        last = every if nodes is None else every.take(nodes)
        return [every] * (len(self.blocks) - 1) + [last]

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Returns the parameters by the name of the setting that holds their weight decay."""
        keys = [block.attention.query for block in self.blocks]
        return groups_by_decay(self, self.features, self.encoding, keys)

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
        r"""Returns the attention weights of one block for each criterion and head,
        :math:`w_i = \sum_k \mathbf{A}_{\pi mqk} \cdot g(\Delta p_{\pi mqk}, i)`. A node that occurs
        several times in a sequence has an entry for each position.

        Call it in evaluation mode: in training mode, dropout affects the result.

        Args:
            x: See :meth:`forward`.
            sequences: See :meth:`forward`.
            encoding: See :meth:`forward`.
            nodes: Nodes to return the attention of, int64 (default: all).
            block: Index of the block (default: the last one).
        """
        chosen = self.blocks[block]
        z = self.embed(x, encoding)
        for module in self.blocks:
            if module is chosen:
                break
            z = module(z, Level(sequences))
        if nodes is None:
            nodes = torch.arange(len(z), device=z.device)
        of_nodes = sequences[:, nodes]
        weights = chosen.attention.weights(chosen.norm(z)[nodes], of_nodes)
        return attention_entries(weights, of_nodes, nodes)


def feature_embedding(
    in_channels: int, channels: int, layers: int, norm: str, input_dropout: float, dropout: float
) -> nn.Sequential:
    r"""Returns :math:`f_\theta`: linear layers, with norm, ReLU and dropout in between."""
    embedding = nn.Sequential(SparseLinear(in_channels, channels, dropout=input_dropout))
    for _ in range(layers - 1):
        embedding.append(NORMS[norm](channels))
        embedding.append(Dropout(dropout, relu=True))
        embedding.append(Linear(channels, channels))
    return embedding


def logits_layer(channels: int, out_channels: int, norm: str, dropout: float) -> nn.Sequential:
    """Returns the last layer: a norm, dropout and a linear layer."""
    return nn.Sequential(NORMS[norm](channels), Dropout(dropout), Linear(channels, out_channels))


def attention_entries(weights: Tensor, sequences: Tensor, nodes: Tensor) -> list[list[Attention]]:
    """Returns the attention of some nodes as entries, for each criterion and head.

    Args:
        weights: The weights of the positions of their sequences. Shape: ``(Q, T, M, L)``.
        sequences: Their sequences. Shape: ``(T, Q, L)``.
        nodes: The nodes. Shape: ``(Q,)``.
    """
    result = []
    for t, sequence in enumerate(sequences):
        heads = []
        for m in range(weights.size(2)):
            query, position = weights[:, t, m].nonzero(as_tuple=True)
            key = sequence[query, position].long()
            heads.append(Attention(nodes[query], key, weights[query, t, m, position]))
        result.append(heads)
    return result


def groups_by_decay(
    model: nn.Module, features: nn.Module, encoding: nn.Module | None, keys: Sequence[nn.Module]
) -> dict[str, list[nn.Parameter]]:
    """Returns the parameters of a model by the name of the setting that holds their weight decay,
    given its parts with a weight decay of their own."""
    parts: dict[str, Sequence[nn.Module | None]] = {
        "feature_weight_decay": [features],
        "encoding_weight_decay": [encoding],
        "key_weight_decay": keys,
    }
    groups = {
        decay: [p for module in modules if module is not None for p in module.parameters()]
        for decay, modules in parts.items()
    }
    own = {id(p) for group in groups.values() for p in group}
    return {"weight_decay": [p for p in model.parameters() if id(p) not in own], **groups}


def check_inputs(x: Any, sequences: Any, encoding: Any, nodes: Any) -> None:
    """Raises an error for inputs of the wrong kind; the operators check shapes and values."""
    if torch.compiler.is_compiling():
        return
    for name, value in (("x", x), ("encoding", encoding)):
        matrix = isinstance(value, Rows | Parts) or hasattr(value, "layout")
        if not matrix and (value is not None or name == "x"):
            raise ValueError(f"{name}: got {type(value).__name__}, expected a tensor (N, C)")
    whole = isinstance(sequences, Tensor)
    levels = isinstance(sequences, list | tuple) and all(isinstance(e, Level) for e in sequences)
    if not levels and (not whole or sequences.is_nested):
        kind = "a nested tensor" if whole else type(sequences).__name__
        raise ValueError(f"sequences: got {kind}, expected a tensor (T, N, L)")
    if nodes is None:
        return
    if not isinstance(nodes, Tensor):
        raise ValueError(f"nodes: got {type(nodes).__name__}, expected a tensor of node indices")
    if whole and sequences.dim() == 3:
        if nodes.is_meta and not sequences.is_meta:
            raise ValueError("nodes: got a tensor without data (device meta)")
        check_all("DGT", ROWS_TAKES, (sequences.size(1), nodes))


class DGTLight(DGT):
    """:class:`DGT` with a single criterion. It takes the same arguments except ``criteria``."""

    def __init__(
        self, in_channels: int, hidden_channels: int, out_channels: int, **settings: Any
    ) -> None:
        super().__init__(in_channels, hidden_channels, out_channels, criteria=1, **settings)
