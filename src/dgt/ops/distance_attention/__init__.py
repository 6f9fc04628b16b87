"""Full attention with a learned bias per distance, in bounded memory."""

from torch import Tensor

from dgt.ops.checks import check_all
from dgt.ops.distance_attention import operator

__all__ = ["distance_attention"]


def distance_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, distances: Tensor
) -> Tensor:
    r"""Computes full attention with a bias per distance:

    .. math::
        \sum_j \mathrm{softmax}_j \Big( \frac{\mathbf{q}_{mi}^\top \mathbf{k}_{mj}}{\sqrt{C / M}}
        + b_{m, \phi(i, j)} \Big) \mathbf{v}_{mj}

    Unlike PyTorch's fused attention, it has a gradient for the bias. Forward and backward pass
    process the queries in tiles and never hold all scores.

    Args:
        query: Shape: ``(M, Q, C / M)``.
        key: Shape: ``(M, N, C / M)``.
        value: Shape: ``(M, N, C / M)``.
        bias: Bias of each distance. Shape: ``(M, V)``.
        distances: Distances between queries and keys, uint8. Shape: ``(Q, N)``.

    Returns:
        Shape: ``(M, Q, C / M)``.
    """
    inputs = (query, key, value, bias, distances)
    check_all("distance_attention", operator.TAKES, inputs, operator.POSITIVE)
    query = query / query.size(-1) ** 0.5
    return operator.attention(*(x.contiguous() for x in (query, *inputs[1:])))[0]
