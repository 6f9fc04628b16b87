"""A linear layer whose input may be sparse."""

import math

import torch
from torch import Tensor, nn

from dgt.ops.dropout import dropout, dropout_linear
from dgt.ops.linear import add_bias, linear
from dgt.ops.sparse.product import csr_matmul
from dgt.ops.sparse.rows import Parts, Rows


class SparseLinear(nn.Module):
    r"""The linear layer :math:`\mathbf{X} \mathbf{W} + \mathbf{b}` with dropout of its input, which
    may be dense or sparse (CSR).

    A sparse input stays sparse: dropout applies to its stored values.

    Args:
        in_channels: Size of each input row.
        out_channels: Size of each output row.
        dropout: Dropout probability of the input.
        bias: Whether the layer has a bias.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.dropout = dropout
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        bound = math.sqrt(6 / (self.in_channels + self.out_channels))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor | Rows | Parts) -> Tensor:
        x, before = x if isinstance(x, Rows) else (x, 0)
        if isinstance(x, Parts) or x.layout == torch.sparse_csr:
            x = x if isinstance(x, Parts) else Parts.of(x)
            values = dropout(x.values, self.dropout, self.training, start=before)
            out = csr_matmul(x.crow, x.columns, values, self.weight)
            return out if self.bias is None else add_bias(out, self.bias)
        dropped = self.training and self.dropout > 0
        if dropped and self.bias is not None and not x.requires_grad:
            row = before // max(1, x.size(1))
            return dropout_linear(x, self.weight, self.bias, self.dropout, row)
        x = dropout(x, self.dropout, self.training, start=before)
        return linear(x, self.weight, self.bias)

    def __repr__(self) -> str:
        sizes = f"{self.in_channels}, {self.out_channels}"
        return f"{type(self).__name__}({sizes}, dropout={self.dropout})"
