"""Learnable positional encodings."""

from torch import Tensor, nn

from dgt.nn.dropout import Dropout
from dgt.nn.linear import Linear
from dgt.nn.norm import NORMS
from dgt.nn.sparse import Rows, SparseLinear


class KatzEncoding(nn.Module):
    r"""The learnable Katz positional encoding

    .. math::
        \mathrm{KatzPE}(v_i) = \mathrm{MLP}(\hat{\mathbf{A}}[v_i]), \qquad
        \hat{\mathbf{A}} = \sum_{k=1}^K \beta^{k-1} \mathbf{A}^k

    with the MLP Linear → norm → ReLU → Linear on the scaled rows of :math:`\hat{\mathbf{A}}`.

    Args:
        anchors: Number of columns N' of the Katz matrix.
        channels: Size of each node's representation.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        dropout: Probability that an entry of the Katz matrix is dropped in training.
        hidden_dropout: Probability that a hidden channel is dropped in training.
    """

    def __init__(
        self,
        anchors: int,
        channels: int,
        *,
        norm: str = "layer",
        dropout: float = 0.0,
        hidden_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.hidden = nn.Sequential(
            SparseLinear(anchors, channels, dropout=dropout),
            NORMS[norm](channels),
            Dropout(hidden_dropout, relu=True),
        )
        self.out = Linear(channels, channels, bias=False)

    def forward(self, z: Tensor, katz: Tensor | Rows) -> Tensor:
        """Adds the encoding of the rows ``katz`` of shape ``(N, N')``, dense or sparse, to the
        representations ``z`` of shape ``(N, C)``."""
        return self.out(self.hidden(katz), plus=z)
