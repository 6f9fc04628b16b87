"""Distance attention in plain PyTorch."""

from torch import Tensor

from dgt.ops.distance_attention import tiles


def attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, distances: Tensor
) -> tuple[Tensor, Tensor]:
    return tiles.forward(look_up, query, key, value, bias, distances)


def attention_backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    distances: Tensor,
    out: Tensor,
    log_sum: Tensor,
) -> list[Tensor]:
    inputs = (query, key, value, bias, distances, out, log_sum)
    return tiles.backward(look_up, add_up, grad, *inputs)


def look_up(bias: Tensor, distances: Tensor, out: Tensor) -> None:
    out.copy_(bias[:, distances.long()])


def add_up(grad: Tensor, distances: Tensor, sums: Tensor) -> None:
    # Unlike scatter_add, a sum per distance is deterministic on GPUs.
    for value in range(sums.size(2)):
        sums[:, :, value] = grad.where(distances == value, 0).sum(-1).t()
