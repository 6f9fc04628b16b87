"""Deformable Graph Attention with scores that see what is read."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dgt.config import ModelConfig
from dgt.nn.attention import ALL, DeformableGraphAttention
from dgt.nn.level import Level
from dgt.ops.deformable_attention import Exchange, Kernel
from dgt.ops.half import statistics_type
from dgt.ops.linear import Linear, linear
from dgt.ops.scored_attention import scored_attention
from dgt.ops.scored_attention.reference import position_weights

LABEL_SCALE = 0.5
"""Standard deviation of the initial weights of labels, of the size of other values."""


def draw_labels(layer: Linear) -> None:
    """Draws the initial weights of a layer that takes labels."""
    # Without memory there is nothing to draw, and torch would load its compiler.
    if layer.weight.device.type != "meta":
        nn.init.normal_(layer.weight, std=LABEL_SCALE)


class ScoredGraphAttention(DeformableGraphAttention):
    r""":class:`DeformableGraphAttention` whose weights also depend on the nodes that are read:

    .. math::
        \hat{w}_{\pi mqi} \propto w_{\pi mqi} \exp \left( \mathbf{u}_{\pi mq}^\top
        \mathbf{v}_{\pi mi} + b_{\pi mq} \, c_{\pi qi} \right), \qquad
        \mathbf{v}_{\pi mi} = \mathbf{W}'_{\pi m} \mathbf{z}_i + \mathbf{E}_{\pi m} \mathbf{y}_i

    The keys say where in a sequence to look, which gives the weight :math:`w` of each position
    :math:`i`. The probe :math:`\mathbf{u}` and the sharpness :math:`b`, linear functions of
    :math:`\mathbf{z}_q`, can reject what is found there. :math:`c` is the closeness that the
    criterion gives to each node. At the start, :math:`\mathbf{u} = 0` and :math:`b = 1`. The values
    may carry the labels :math:`\mathbf{y}` of nodes. The first position of a sequence, the base
    node, is then not read, so that no node reads its own label.

    Args:
        channels: Size of each node's representation.
        label_channels: Number of columns of the labels; 0 for values without labels.
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
        label_channels: int = 0,
        criteria: int = 3,
        heads: int = ModelConfig.heads,
        keys: int = ModelConfig.keys,
        kernel: Kernel | None = None,
        dropout: float = ModelConfig.node_dropout,
        value_dropout: float = ModelConfig.value_dropout,
    ) -> None:
        super().__init__(
            channels,
            criteria=criteria,
            heads=heads,
            keys=keys,
            kernel=kernel,
            dropout=dropout,
            value_dropout=value_dropout,
        )
        self.probe = Linear(channels, criteria * heads * (channels // heads + 1))
        self.labels = None
        if label_channels:
            self.labels = Linear(label_channels, criteria * channels, bias=False)
            draw_labels(self.labels)
        nn.init.zeros_(self.probe.weight)
        nn.init.zeros_(self.probe.bias)
        # b starts at 1, to which weight decay pulls back.
        start = torch.zeros(channels // heads + 1)
        start[-1] = 1
        self.probe_start: Tensor
        self.register_buffer("probe_start", start, persistent=False)

    def forward(  # type: ignore[override]
        self,
        z: Tensor,
        sequences: Tensor,
        closeness: Tensor,
        labels: Tensor | None = None,
        nodes: Tensor | None = None,
    ) -> Tensor:
        """
        Args:
            z: Representations of the nodes. Shape: ``(N, C)``.
            sequences: As for :class:`DeformableGraphAttention`. Shape: ``(T, Q, L)``.
            closeness: The closeness of the nodes in the sequences. Shape: ``(T, Q, L)``.
            labels: The labels that the values carry. Shape: ``(N, label_channels)``.
            nodes: The rows of ``z`` that attend, int64 (default: all).

        Returns:
            Shape: ``(Q, C)``.
        """
        return self.attend(z, Level(sequences, nodes, closeness, labels))

    def project(self, z: Tensor, criteria: slice = ALL, labels: Tensor | None = None) -> Tensor:
        r"""Computes the values :math:`\mathbf{W}' \mathbf{z} + \mathbf{E} \mathbf{y}` that nodes
        read. Arguments as for :meth:`DeformableGraphAttention.project`."""
        values = super().project(z, criteria)
        if self.labels is None:
            return values
        if labels is None:
            raise ValueError("the attention was built for values with labels, got none")
        weight = self.labels.weight.unflatten(0, (self.criteria, -1))[criteria].flatten(0, 1)
        return linear(labels, weight.t(), values.flatten(1)).view_as(values)

    def asked(self, queries: Tensor, criteria: slice = ALL) -> tuple[Tensor, ...]:
        """Computes what the attention needs of each query: its keys and its probes. Arguments as
        for :meth:`DeformableGraphAttention.asked`."""
        return self.queries(queries, criteria), self.probes(queries, criteria)

    def look(
        self,
        values: Tensor,
        level: Level,
        asked: Sequence[Tensor],
        exchange: Exchange | None = None,
    ) -> Tensor:
        """Reads the values that the keys and the scores of each query choose. Arguments as for
        :meth:`DeformableGraphAttention.look`."""
        if level.closeness is None:
            raise ValueError("the attention needs the closeness of the nodes, got none")
        inputs = values, level.sequences, level.closeness
        query, probe = asked
        return scored_attention(*inputs, query, probe, self.kernel, self.skip, exchange)

    def probes(self, z: Tensor, criteria: slice = ALL) -> Tensor:
        r"""Computes the probes :math:`\mathbf{u}` and, last, the sharpness :math:`b`.

        Returns:
            Shape: ``(Q, T, M, D + 1)``.
        """
        shape = (self.criteria, self.heads, self.channels // self.heads + 1)
        weight = self.probe.weight.unflatten(0, shape)[criteria].flatten(0, 2)
        bias = (self.probe.bias.unflatten(0, shape) + self.probe_start)[criteria].flatten()
        return linear(z, weight.t(), bias).unflatten(1, (-1, *shape[1:]))

    @property
    def skip(self) -> int:
        """The number of positions at the start of the sequences that are not read: with labels, the
        base node, whose own label must not be read."""
        return 0 if self.labels is None else 1

    def weights(self, z: Tensor, level: Level) -> Tensor:  # type: ignore[override]
        r"""Returns the attention :math:`\hat{w}` on each position of the sequences.

        Args:
            z: Representations of all nodes. Shape: ``(N, C)``.
            level: The nodes that attend, and what they read.

        Returns:
            Shape: ``(Q, T, M, L)``.
        """
        queries, values = level.rows(z), self.project(z, labels=level.labels)
        query, probe = self.queries(queries), self.probes(queries)
        exact = statistics_type(query)
        assert level.closeness is not None
        real = (x.to(exact) for x in (values, level.closeness, query, probe))
        values, closeness, query, probe = real
        inputs = (values, level.sequences, closeness, query, probe)
        return position_weights(*inputs, self.kernel, self.skip)
