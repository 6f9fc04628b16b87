"""A norm and a linear skip around the layer of a graph neural network."""

import torch
from torch import Tensor, nn

from dgt.ops.norm import NORMS
from dgt.ops.sparse import SparseLinear


class Normed(nn.Module):
    r"""A layer with a linear skip and a norm, as in `"Classic GNNs are Strong Baselines:
    Reassessing GNNs for Node Classification" <https://arxiv.org/abs/2406.08993>`_:

    .. math::
        \mathbf{H}' = \mathbf{a} \odot \mathrm{norm}\big(\mathrm{layer}(\mathbf{H}) + \mathbf{H}
        \mathbf{W}\big) + \mathbf{b}

    The ReLU that follows needs the learnable scale :math:`\mathbf{a}` and shift :math:`\mathbf{b}`,
    because the norm cancels those of the layer.

    Args:
        layer: The layer. It has a bias.
        in_channels: Its input channels.
        out_channels: Its output channels.
        norm: ``"layer"``, ``"batch"`` or ``"none"``; without a norm, there is no scale and shift.
        skip: Whether to add :math:`\mathbf{H} \mathbf{W}`.
        dropout: Dropout probability of the skip's input.
    """

    def __init__(
        self,
        layer: nn.Module,
        in_channels: int,
        out_channels: int,
        *,
        norm: str,
        skip: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.layer = layer
        self.skip: SparseLinear | None = None
        if skip:
            self.skip = SparseLinear(in_channels, out_channels, dropout=dropout, bias=False)
        self.norm: nn.Module | None = None
        if norm != "none":
            self.norm = NORMS[norm](out_channels)
            self.scale = nn.Parameter(torch.ones(out_channels))
            self.shift = nn.Parameter(torch.zeros(out_channels))

    def forward(self, x: Tensor, *matrix: Tensor) -> Tensor:
        out = self.layer(x, *matrix)
        if self.skip is not None:
            out = out + self.skip(x)
        if self.norm is not None:
            out = (self.norm(out) * self.scale + self.shift).to(out.dtype)
        return out


def normed(
    layer: nn.Module,
    in_channels: int,
    out_channels: int,
    *,
    norm: str,
    skip: bool,
    dropout: float,
) -> nn.Module:
    """Returns the layer in :class:`Normed`, or as it is if there is nothing to add."""
    if norm == "none" and not skip:
        return layer
    return Normed(layer, in_channels, out_channels, norm=norm, skip=skip, dropout=dropout)
