"""Full attention: every node attends to all nodes."""

from torch import Tensor, nn
from torch.nn import functional as F

from dgt.ops.distance_attention import distance_attention
from dgt.ops.linear import Linear

Bias = tuple[Tensor, Tensor]
"""The bias of each distance, shape ``(M, V)``, and the distances, shape ``(Q, N)``."""


class FullAttention(nn.Module):
    r"""Multi-head attention over all nodes,

    .. math::
        \mathrm{MHA}(\mathbf{z}_i) = \mathbf{O} \Big[ \big\|_{m=1}^M \sum_j
        \mathrm{softmax}_j \Big( \frac{(\mathbf{Q}_m \mathbf{z}_i)^\top \mathbf{K}_m \mathbf{z}_j}
        {\sqrt{C / M}} + b_{mij} \Big) \mathbf{V}_m \mathbf{z}_j \Big]

    Without the bias :math:`b`, it calls PyTorch's fused ``scaled_dot_product_attention``; with it,
    :func:`~dgt.ops.distance_attention.distance_attention`. Neither keeps an ``(N, N)`` matrix.

    Args:
        channels: Size C of each node's representation.
        heads: Number of heads M; must divide ``channels``.
    """

    def __init__(self, channels: int, *, heads: int) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"channels ({channels}) must be a multiple of heads ({heads})")
        self.heads = heads
        self.queries = Linear(channels, channels)
        self.key_value = Linear(channels, 2 * channels)
        self.out = Linear(channels, channels)

    def forward(self, z: Tensor, nodes: Tensor | None = None, bias: Bias | None = None) -> Tensor:
        """
        Args:
            z: Representations of all nodes. Shape: ``(N, C)``.
            nodes: The Q nodes that attend, int64 (default: all).
            bias: Bias added to the attention scores (default: none).

        Returns:
            Shape: ``(Q, C)``.
        """
        query, key, value = self._split(z, nodes)
        if bias is None:
            out = F.scaled_dot_product_attention(query[None], key[None], value[None])[0]
        else:
            out = distance_attention(query, key, value, *bias)
        return self.out(out.transpose(0, 1).flatten(1))  # from (M, N, C / M)

    def weights(self, z: Tensor, nodes: Tensor | None = None, bias: Bias | None = None) -> Tensor:
        """Returns the attention weights of all nodes or of ``nodes``. Shape: ``(M, Q, N)``."""
        query, key, _ = self._split(z, nodes)
        scores = query / query.size(-1) ** 0.5 @ key.mT
        if bias is not None:
            values, distances = bias
            scores += values[:, distances.long()]
        return scores.softmax(-1)

    def _split(self, z: Tensor, nodes: Tensor | None) -> tuple[Tensor, ...]:
        """Returns queries ``(M, Q, C / M)``, and keys and values ``(M, N, C / M)``."""
        query = self.queries(z if nodes is None else z[nodes])
        key, value = self.key_value(z).chunk(2, dim=1)
        shape = (-1, self.heads, query.size(1) // self.heads)
        return tuple(t.reshape(shape).transpose(0, 1) for t in (query, key, value))
