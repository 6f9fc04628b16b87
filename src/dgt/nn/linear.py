"""A linear layer whose gradients have the same bits for any number of threads."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    r"""PyTorch's linear layer :math:`\mathbf{x} \mathbf{W}^\top + \mathbf{b}`.

    The gradient of the weight is a product over all nodes. When its left factor has some few
    columns (5, 6, 7, 9, 10 or 11) and the right one more, MKL shares the sum among its threads, and
    the last bits depend on their number. So the wider factor is put to the left.
    """

    def forward(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """Adds ``plus``, which may be given to a layer without bias, in the same pass."""
        weight = wider_left(self.weight.t())
        if plus is not None:
            return torch.addmm(plus, x, weight)
        return F.linear(x, weight.t(), self.bias)


def wider_left(weight: Tensor) -> Tensor:
    """The weight of shape ``(in, out)`` in the memory order that makes autograd take the product
    for its gradient with the wider factor to the left: by rows ``x.t() @ grad``, by columns
    ``(grad.t() @ x).t()``."""
    by_rows = weight.size(0) >= weight.size(1)
    return weight.contiguous() if by_rows else weight.t().contiguous().t()
