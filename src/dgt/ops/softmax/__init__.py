"""Softmax whose gradient, unlike PyTorch's, does not depend on the number of threads."""

from torch import Tensor

from dgt.ops.softmax.operator import softmax_operator

__all__ = ["softmax"]


def softmax(x: Tensor) -> Tensor:
    """Computes the softmax over the last dimension."""
    return softmax_operator(x)
