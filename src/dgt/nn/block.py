"""One block of the Deformable Graph Transformer."""

from torch import Tensor, nn

from dgt.config import ModelConfig
from dgt.nn import rows
from dgt.nn.attention import DeformableGraphAttention
from dgt.nn.level import Level
from dgt.ops.dropout import Dropout
from dgt.ops.linear import Linear
from dgt.ops.norm import NORMS


class Block(nn.Module):
    r"""One pre-norm block of the Deformable Graph Transformer:

    .. math::
        \hat{\mathbf{z}} = \mathrm{DGA}(\mathrm{norm}(\mathbf{z})) + \mathbf{z}, \qquad
        \mathbf{z}' = \mathrm{MLP}(\mathrm{norm}(\hat{\mathbf{z}})) + \hat{\mathbf{z}}
    """

    def __init__(
        self,
        attention: DeformableGraphAttention,
        *,
        norm: str = ModelConfig.norm,
        mlp_ratio: float = ModelConfig.mlp_ratio,
        dropout: float = ModelConfig.dropout,
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

    def forward(self, z: Tensor, level: Level) -> Tensor:
        """
        Args:
            z: Representations of all nodes. Shape: ``(N, C)``.
            level: The nodes that attend, with their sequences.

        Returns:
            New representations of the nodes that attend. Shape: ``(Q, C)``.
        """
        read = self.attention.attend(self.norm(z), level)
        return rows.each(self.mlp, read, level.rows(z), nodes=level.nodes)

    def mlp(self, read: Tensor, z: Tensor) -> Tensor:
        """Adds the output of the attention, ``read``, to ``z``, and then the output of the MLP."""
        z = self.dropout(read, plus=z)
        return self.out(self.hidden(z), plus=z)
