"""Attention of every node over all nodes."""

from torch import Tensor, nn
from torch.nn import functional as F

from dgt.nn.linear import Linear
from dgt.nn.softmax import softmax


class FullAttention(nn.Module):
    r"""Multi-head attention over all nodes,

    .. math::
        \mathrm{MHA}(\mathbf{z}_i) = \mathbf{O} \Big[ \big\|_{m=1}^M \sum_j
        \mathrm{softmax}_j \Big( \frac{(\mathbf{Q}_m \mathbf{z}_i)^\top \mathbf{K}_m \mathbf{z}_j}
        {\sqrt{C / M}} + b_{mij} \Big) \mathbf{V}_m \mathbf{z}_j \Big]

    Without the bias :math:`b` this is PyTorch's fused ``scaled_dot_product_attention``, which keeps
    no N x N matrix; it has no gradient for a bias.

    Args:
        channels: Size C of each node's representation.
        heads: Number of heads M; divides ``channels``.
    """

    def __init__(self, channels: int, *, heads: int = 4) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"channels ({channels}) must be a multiple of heads ({heads})")
        self.heads = heads
        self.queries = Linear(channels, channels)
        self.key_value = Linear(channels, 2 * channels)
        self.out = Linear(channels, channels)

    def forward(self, z: Tensor, nodes: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        """What all nodes, or ``nodes``, read; ``bias`` has the shape ``(M, nodes, N)``."""
        query, key, value = self._split(z, nodes)
        if bias is None:
            out = F.scaled_dot_product_attention(query, key, value)
        else:
            out = _weights(query, key, bias) @ value
        return self.out(out[0].transpose(0, 1).flatten(1))  # from (1, M, N, C / M)

    def weights(self, z: Tensor, nodes: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
        """The attention itself, of all nodes or of ``nodes``. Shape: ``(M, nodes, N)``."""
        query, key, _ = self._split(z, nodes)
        return _weights(query, key, bias)[0]

    def _split(self, z: Tensor, nodes: Tensor | None) -> tuple[Tensor, ...]:
        """Queries, keys and values, each of shape ``(1, M, nodes or N, C / M)``."""
        query = self.queries(z if nodes is None else z[nodes])
        key, value = self.key_value(z).chunk(2, dim=1)
        shape = (-1, self.heads, query.size(1) // self.heads)
        return tuple(t.reshape(shape).transpose(0, 1)[None] for t in (query, key, value))


def _weights(query: Tensor, key: Tensor, bias: Tensor | None) -> Tensor:
    scores = query / query.size(-1) ** 0.5 @ key.transpose(-1, -2)
    return softmax(scores if bias is None else scores + bias)
