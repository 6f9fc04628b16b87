"""Simple Graph Convolution."""

from torch import Tensor, nn

from dgt.nn.sparse import SparseLinear


class SGC(nn.Module):
    r"""SGC from `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_:

    .. math::
        \mathbf{Y} = \mathbf{S}^K \mathbf{X} \mathbf{W}, \qquad
        \mathbf{S} = \mathbf{D}^{-1/2} (\mathbf{A} + \mathbf{I}) \mathbf{D}^{-1/2}

    :math:`\mathbf{S}^K \mathbf{X}` is computed once, as in the paper (PyG's ``SGConv`` does so when
    it is first called).

    Args:
        in_channels: Number of features.
        hidden_channels: Not used: the model is linear.
        out_channels: Number of classes.
        input_dropout: Dropout of the smoothed features.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.out = SparseLinear(in_channels, out_channels, dropout=input_dropout)

    def forward(self, smoothed: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """The logits of all nodes, or of ``nodes``, from the smoothed features."""
        out = self.out(smoothed)
        return out if nodes is None else out[nodes]
