"""Deformable Graph Attention with scores that see what is read."""

import torch
from torch import Tensor, nn

from dgt.config import ModelConfig
from dgt.nn.attention import DeformableGraphAttention
from dgt.ops.deformable_attention import Kernel
from dgt.ops.half import statistics_type
from dgt.ops.linear import Linear
from dgt.ops.scored_attention import scored_attention
from dgt.ops.scored_attention.reference import position_weights

LABEL_SCALE = 0.5
"""Standard deviation of the initial weights of labels, of the size of other values."""


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
    may carry the labels :math:`\mathbf{y}` of nodes.

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
            nn.init.normal_(self.labels.weight, std=LABEL_SCALE)
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
        values, query, probe = self._inputs(z, labels, nodes)
        read = scored_attention(values, sequences, closeness, query, probe, self.kernel)
        return self.out(read.flatten(1))

    def _inputs(
        self, z: Tensor, labels: Tensor | None, nodes: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the values ``(N, T, M, D)``, and the queries ``(Q, 2, T, M, K)`` and probes
        ``(Q, T, M, D + 1)`` of the nodes that attend."""
        values = self.project(z)
        if self.labels is not None:
            if labels is None:
                raise ValueError("the attention was built for values with labels, got none")
            values = values + self.labels(labels).view_as(values)
        queries = z if nodes is None else z[nodes]
        probe = self.probe(queries).unflatten(1, (self.criteria, self.heads, -1))
        return values, self.queries(queries), probe + self.probe_start

    def weights(  # type: ignore[override]
        self,
        z: Tensor,
        sequences: Tensor,
        closeness: Tensor,
        labels: Tensor | None = None,
        nodes: Tensor | None = None,
    ) -> Tensor:
        r"""Returns the attention :math:`\hat{w}` on each position of the sequences. Takes the
        arguments of :meth:`forward`.

        Returns:
            Shape: ``(Q, T, M, L)``.
        """
        values, query, probe = self._inputs(z, labels, nodes)
        exact = statistics_type(query)
        return position_weights(
            values.to(exact), sequences, closeness, query.to(exact), probe.to(exact), self.kernel
        )
