"""The learnable positional encoding."""

from torch import Tensor, nn

from dgt.config import ModelConfig
from dgt.ops.dropout import Dropout
from dgt.ops.linear import Linear
from dgt.ops.norm import NORMS
from dgt.ops.sparse import Rows, SparseLinear


class KatzEncoding(nn.Module):
    r"""The learnable Katz positional encoding

    .. math::
        \mathrm{KatzPE}(v_i) = \mathrm{MLP}(\hat{\mathbf{A}}[v_i]), \qquad
        \hat{\mathbf{A}} = \sum_{k=1}^K \beta^{k-1} \mathbf{A}^k

    The MLP is Linear → norm → ReLU → Linear on the scaled rows of :math:`\hat{\mathbf{A}}`.

    Args:
        anchors: Number of columns N' of the Katz matrix.
        channels: Size of each node's representation.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        dropout: Dropout probability of the entries of the Katz matrix.
        hidden_dropout: Dropout probability of hidden channels.
    """

    def __init__(
        self,
        anchors: int,
        channels: int,
        *,
        norm: str = ModelConfig.norm,
        dropout: float = ModelConfig.encoding_dropout,
        hidden_dropout: float = ModelConfig.dropout,
    ) -> None:
        super().__init__()
        self.hidden = nn.Sequential(
            SparseLinear(anchors, channels, dropout=dropout),
            NORMS[norm](channels),
            Dropout(hidden_dropout, relu=True),
        )
        self.out = Linear(channels, channels, bias=False)

    def forward(self, z: Tensor, katz: Tensor | Rows) -> Tensor:
        """Adds the encoding to the representations.

        Args:
            z: Representations of the nodes. Shape: ``(N, C)``.
            katz: Scaled rows of the Katz matrix, dense or sparse (CSR). Shape: ``(N, N')``.

        Returns:
            Shape: ``(N, C)``.
        """
        return self.out(self.hidden(katz), plus=z)
