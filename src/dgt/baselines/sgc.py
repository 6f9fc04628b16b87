"""Simple Graph Convolution."""

from torch import Tensor, nn

from dgt.baselines.record import DEFAULTS, LAYERS
from dgt.nn.record import Model, builder
from dgt.ops.sparse import SparseLinear

_DEFAULTS = DEFAULTS | {"input_dropout": 0.0}


class SGC(nn.Module):
    r"""SGC from `"Simplifying Graph Convolutional Networks" <https://arxiv.org/abs/1902.07153>`_:

    .. math::
        \mathbf{Y} = \mathbf{S}^K \mathbf{X} \mathbf{W}, \qquad
        \mathbf{S} = \mathbf{D}^{-1/2} (\mathbf{A} + \mathbf{I}) \mathbf{D}^{-1/2}

    As in the paper, :math:`\mathbf{S}^K \mathbf{X}` is computed once, before training.

    Args:
        in_channels: Number of features.
        hidden_channels: Unused, as the model is linear.
        out_channels: Number of classes.
        input_dropout: Dropout probability of the smoothed features.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        input_dropout: float = _DEFAULTS["input_dropout"],
    ) -> None:
        super().__init__()
        self.out = SparseLinear(in_channels, out_channels, dropout=input_dropout)

    def forward(self, smoothed: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            smoothed: The matrix :math:`S^K X`, dense or sparse (CSR). Shape: ``(N, F)``.
            nodes: Nodes to return logits for (default: all).
        """
        out = self.out(smoothed)
        return out if nodes is None else out[nodes]


MODEL = Model(
    build=builder(SGC),
    inputs=("smoothed",),
    settings=("layers",),
    grid=LAYERS,
    defaults=_DEFAULTS,
)
