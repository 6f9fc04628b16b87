"""Deformable Graph Attention."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dgt.config import ModelConfig
from dgt.nn import rows
from dgt.nn.level import Level
from dgt.ops.checks import check_all
from dgt.ops.deformable_attention import Exchange, Kernel, deformable_attention
from dgt.ops.deformable_attention.reference import position_weights
from dgt.ops.dropout import dropout as drop
from dgt.ops.dropout import dropout_rows
from dgt.ops.half import statistics_type
from dgt.ops.linear import Linear, linear
from dgt.ops.sparse.rows import ROWS_TAKES

ALL = slice(None)


class DeformableGraphAttention(nn.Module):
    r"""Deformable Graph Attention (DGA) from the `"Deformable Graph Transformer"
    <https://arxiv.org/abs/2206.14337>`_ paper:

    .. math::
        \mathrm{DGA}(\mathbf{z}_q, \{S_{\pi q}\}) = \sum_{\pi \in \Pi} \sum_{m=1}^M
        \mathbf{W}_{\pi m} \left[ \sum_{k=1}^K \mathbf{A}_{\pi mqk} \cdot
        \mathbf{W}'_{\pi m} \tilde{S}_{\pi q}(\Delta p_{\pi mqk}) \right], \qquad
        \tilde{S}_{\pi q}(p) = \sum_i g(p, i) \cdot S_{\pi q}[i]

    For each node :math:`q`, criterion :math:`\pi` and head :math:`m`, the keys are located in the
    sequence :math:`S_{\pi q}` of :math:`n_{\pi q}` nodes, at the positions
    :math:`\Delta p_{\pi mqk} = (n_{\pi q} - 1) \cdot
    \mathrm{sigmoid}(\theta^{\mathrm{off}}(\mathbf{z}_q))`. They are interpolated by the kernel
    :math:`g` and weighted by :math:`\mathbf{A}`, the softmax over the K keys of a linear function
    of :math:`\mathbf{z}_q`.

    Args:
        channels: Size of each node's representation.
        criteria: Number of criteria T.
        heads: Number of heads M per criterion; must divide ``channels``.
        keys: Number of keys K per head.
        kernel: The interpolation kernel g.
        dropout: Probability that the values of a node are read as zero during training.
        value_dropout: Dropout probability of each channel that the values are computed from.
    """

    def __init__(
        self,
        channels: int,
        *,
        criteria: int = 3,
        heads: int = ModelConfig.heads,
        keys: int = ModelConfig.keys,
        kernel: Kernel | None = None,
        dropout: float = ModelConfig.node_dropout,
        value_dropout: float = ModelConfig.value_dropout,
    ) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"channels ({channels}) must be a multiple of heads ({heads})")
        self.channels = channels
        self.criteria = criteria
        self.heads = heads
        self.keys = keys
        self.dropout = dropout
        self.value_dropout = value_dropout
        self.kernel = kernel or Kernel()
        self.values = Linear(channels, criteria * channels, bias=False)
        self.query = Linear(channels, 2 * criteria * heads * keys)
        self.out = Linear(criteria * channels, channels, bias=False)
        self.start: Tensor
        self.register_buffer("start", self._start(), persistent=False)
        self.reset_parameters()

    def _start(self) -> Tensor:
        """Returns the queries for zero weights, to which weight decay pulls back: all keys get the
        same attention and are spread evenly over the sequence, those of each head over all of it.
        Shape: ``(2, T, M, K)``."""
        count = self.heads * self.keys
        # On the CPU, because the meta device computes with torch._dynamo, which takes long to load.
        share = ((torch.arange(count, device="cpu") + 0.5) / count).view(self.keys, self.heads).T
        start = torch.zeros(2, self.criteria, self.heads, self.keys, device="cpu")
        start[0] = torch.logit(share)
        return start.to(torch.get_default_device())

    def reset_parameters(self) -> None:
        """Initializes values and output as in a Transformer, and queries with zeros."""
        for layer in (self.values, self.out):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(self.query.weight)
        nn.init.zeros_(self.query.bias)

    def forward(self, z: Tensor, sequences: Tensor, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            z: Representations of the nodes. Shape: ``(N, C)``.
            sequences: The sequences of the nodes that attend: row indices of ``z``, int32, padded
                at the end with -1. Shape: ``(T, Q, L)``.
            nodes: The rows of ``z`` that attend, int64 (default: all).

        Returns:
            Shape: ``(Q, C)``.
        """
        return self.attend(z, Level(sequences, nodes))

    def attend(self, z: Tensor, level: Level) -> Tensor:
        """Does the same as :meth:`forward`, for the nodes and sequences of a level."""
        sequences, nodes = level.sequences, level.nodes
        if sequences.dim() != 3 or sequences.size(0) != self.criteria:
            shape = tuple(sequences.shape)
            raise ValueError(f"sequences must have the shape ({self.criteria}, N, L), got {shape}")
        if nodes is not None:
            check_all("DeformableGraphAttention", ROWS_TAKES, (z.size(0), nodes))
        return rows.attend(self, z, level)

    def project(self, z: Tensor, criteria: slice = ALL, labels: Tensor | None = None) -> Tensor:
        r"""Computes the values :math:`\mathbf{W}' \mathbf{z}` that nodes read, after dropout.

        Args:
            z: Representations of the nodes. Shape: ``(N, C)``.
            criteria: The criteria to compute values for (default: all).
            labels: For attention whose values carry labels.

        Returns:
            Shape: ``(N, T, M, D)``, with ``D = C / M``.
        """
        z = dropout_rows(z, self.dropout, self.training)
        z = drop(z, self.value_dropout, self.training)
        weight = self.values.weight.unflatten(0, (self.criteria, -1))[criteria].flatten(0, 1)
        return linear(z, weight.t()).unflatten(1, (-1, self.heads, self.channels // self.heads))

    def read(self, values: Tensor, level: Level, queries: Tensor, criteria: slice = ALL) -> Tensor:
        """Reads the values at the keys of each query, and mixes them over keys, heads and criteria.

        Args:
            values: Values of all nodes from :meth:`project`. Shape: ``(N, T, M, D)``.
            level: Holds the sequences of the queries. Shape: ``(T, Q, L)``.
            queries: Representations of the queries. Shape: ``(Q, C)``.
            criteria: The criteria that ``values`` and ``level`` are for (default: all).

        Returns:
            Shape: ``(Q, C)``.
        """
        return self.mix(self.look(values, level, self.asked(queries, criteria)), criteria)

    def asked(self, queries: Tensor, criteria: slice = ALL) -> tuple[Tensor, ...]:
        """Computes what the attention needs of each query: the offsets and the attention of its
        keys.

        Returns:
            Tensors of shape ``(Q, ..., T, M, K)``.
        """
        return (self.queries(queries, criteria),)

    def look(
        self,
        values: Tensor,
        level: Level,
        asked: Sequence[Tensor],
        exchange: Exchange | None = None,
    ) -> Tensor:
        """Reads the values at the keys of each query.

        Args:
            values: Values of all nodes or, with an ``exchange``, of those that this rank owns.
                Shape: ``(N, T, M, D)``.
            level: Holds the sequences of the queries. Shape: ``(T, Q, L)``.
            asked: From :meth:`asked`.
            exchange: Provides the values that other ranks own.

        Returns:
            Shape: ``(Q, T, M, D)``.
        """
        (query,) = asked
        return deformable_attention(values, level.sequences, query, self.kernel, exchange)

    def mix(self, read: Tensor, criteria: slice = ALL) -> Tensor:
        """Mixes what was read over heads and criteria.

        Args:
            read: Shape: ``(Q, T, M, D)``.
            criteria: The criteria that ``read`` is for (default: all).

        Returns:
            Shape: ``(Q, C)``.
        """
        weight = self.out.weight.unflatten(1, (self.criteria, -1))[:, criteria].flatten(1)
        return linear(read.flatten(1), weight.t())

    def queries(self, z: Tensor, criteria: slice = ALL) -> Tensor:
        """Computes the linear function of ``z`` that gives the offsets and the attention of the
        keys.

        Returns:
            Shape: ``(Q, 2, T, M, K)``.
        """
        shape = (2, self.criteria, self.heads * self.keys)
        weight = self.query.weight.unflatten(0, shape)[:, criteria].flatten(0, 2)
        bias = self.query.bias + self.start.flatten()
        bias = bias.unflatten(0, shape)[:, criteria].flatten()
        return linear(z, weight.t(), bias).unflatten(1, (2, -1, self.heads, self.keys))

    def weights(self, z: Tensor, sequences: Tensor) -> Tensor:
        r"""Returns the attention on each position of the sequences of each node,
        :math:`w_i = \sum_k \mathbf{A}_{\pi mqk} \cdot g(\Delta p_{\pi mqk}, i)`.

        Returns:
            Shape: ``(N, T, M, L)``.
        """
        query = self.queries(z)
        return position_weights(sequences, query.to(statistics_type(query)), self.kernel)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.channels}, criteria={self.criteria}, heads={self.heads}, "
            f"keys={self.keys}, kernel={self.kernel})"
        )
