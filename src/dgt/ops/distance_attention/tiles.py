"""Distance attention, one tile (some rows of the scores) at a time.

Both forms use the same tiles. They differ in how the biases are looked up and how their gradients
are summed.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

TILE = 2**20
"""Number of scores per tile, small enough to stay in the cache."""

LookUp = Callable[[Tensor, Tensor, Tensor], object]
"""Writes ``bias[m, distances[i, j]]`` to the scores of a tile of R rows. Shape: ``(M, R, N)``."""
AddUp = Callable[[Tensor, Tensor, Tensor], object]
"""Sums scores ``(M, R, N)`` by distance into zeros ``(R, M, V)``."""


def forward(
    look_up: LookUp, query: Tensor, key: Tensor, value: Tensor, bias: Tensor, distances: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the output, shape ``(M, Q, D)``, and the logarithm of the sum of each softmax, shape
    ``(M, Q, 1)``."""
    out, log_sum = torch.empty_like(query), query.new_empty(*query.shape[:2], 1)
    for rows, scores in _tiles(look_up, query, key, bias, distances):
        largest = scores.amax(-1, keepdim=True)
        total = scores.sub_(largest).exp_().sum(-1, keepdim=True)
        out[:, rows] = scores @ value / total
        log_sum[:, rows] = largest + total.log()
    return out, log_sum


def backward(
    look_up: LookUp,
    add_up: AddUp,
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    distances: Tensor,
    out: Tensor,
    log_sum: Tensor,
) -> list[Tensor]:
    """Returns the gradients of query, key, value and bias."""
    grads = [torch.zeros_like(t) for t in (query, key, value)]
    grad_query, grad_key, grad_value = grads
    sums = bias.new_zeros(len(distances), *bias.shape)
    along = (grad * out).sum(-1, keepdim=True)
    for rows, scores in _tiles(look_up, query, key, bias, distances):
        weights = scores.sub_(log_sum[:, rows]).exp_()
        grad_value.baddbmm_(weights.mT, grad[:, rows])
        grad_scores = (grad[:, rows] @ value.mT).sub_(along[:, rows]).mul_(weights)
        grad_query[:, rows] = grad_scores @ key
        grad_key.baddbmm_(grad_scores.mT, query[:, rows])
        add_up(grad_scores, distances[rows], sums[rows])
    return [*grads, sums.sum(0)]


def _tiles(
    look_up: LookUp, query: Tensor, key: Tensor, bias: Tensor, distances: Tensor
) -> Iterator[tuple[slice, Tensor]]:
    """Yields the rows of each tile and their scores, which the caller may overwrite."""
    (M, Q, _), N = query.shape, key.size(1)
    step = max(1, min(Q, TILE // (M * N)))
    room = query.new_empty(M * step * N)
    query, key, bias = query.detach(), key.detach(), bias.detach()
    for start in range(0, Q, step):
        rows = slice(start, min(start + step, Q))
        scores = room[: M * (rows.stop - start) * N].view(M, -1, N)
        look_up(bias, distances[rows], scores)
        yield rows, scores.baddbmm_(query[:, rows], key.mT)
