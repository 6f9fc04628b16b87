"""Full attention with a bias for each distance, in little memory."""

from collections.abc import Iterator
from typing import Any

import torch
from numba import njit
from torch import Tensor

from dgt import threads

TILE = 2**20
"""Scores at a time: few enough to stay in the cache."""


def distance_attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, distances: Tensor
) -> Tensor:
    r"""What each query reads,

    .. math::
        \sum_j \mathrm{softmax}_j \Big( \frac{\mathbf{q}_{mi}^\top \mathbf{k}_{mj}}{\sqrt{C / M}}
        + b_{m, \phi(i, j)} \Big) \mathbf{v}_{mj}

    with a gradient for the bias, which PyTorch's fused attention has not. It goes through the
    queries tile by tile, backwards too, and keeps no matrix of all scores.

    Args:
        query: Shape: ``(M, Q, C / M)``.
        key: Shape: ``(M, N, C / M)``.
        value: Shape: ``(M, N, C / M)``.
        bias: The bias of each distance. Shape: ``(M, values)``.
        distances: The distances, uint8. Shape: ``(Q, N)``.

    Returns:
        Shape: ``(M, Q, C / M)``.
    """
    scaled = query / query.size(-1) ** 0.5
    return _attention(*(t.contiguous() for t in (scaled, key, value, bias, distances)))[0]


@torch.library.custom_op("dgt::distance_attention", mutates_args=(), device_types="cpu")
def _attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, distances: Tensor
) -> tuple[Tensor, Tensor]:
    """What is read, and the logarithm of each softmax's sum."""
    out, log_sum = torch.empty_like(query), query.new_empty(*query.shape[:2], 1)
    for rows, scores in _tiles(query, key, bias, distances):
        largest = scores.amax(-1, keepdim=True)
        total = scores.sub_(largest).exp_().sum(-1, keepdim=True)
        out[:, rows] = scores @ value / total
        log_sum[:, rows] = largest + total.log()
    return out, log_sum


@torch.library.custom_op("dgt::distance_attention_backward", mutates_args=(), device_types="cpu")
def _backward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    distances: Tensor,
    out: Tensor,
    log_sum: Tensor,
) -> list[Tensor]:
    grads = [torch.zeros_like(t) for t in (query, key, value)]
    grad_query, grad_key, grad_value = grads
    sums = bias.new_zeros(len(distances), *bias.shape)
    along = (grad * out).sum(-1, keepdim=True)
    for rows, scores in _tiles(query, key, bias, distances):
        weights = scores.sub_(log_sum[:, rows]).exp_()
        grad_value.baddbmm_(weights.mT, grad[:, rows])
        grad_scores = (grad[:, rows] @ value.mT).sub_(along[:, rows]).mul_(weights)
        grad_query[:, rows] = grad_scores @ key
        grad_key.baddbmm_(grad_scores.mT, query[:, rows])
        arrays = [t.numpy() for t in (grad_scores, distances[rows], sums[rows])]
        threads.run(_add_up, grad_scores.size(1), *arrays)
    return [*grads, sums.sum(0)]


def _tiles(
    query: Tensor, key: Tensor, bias: Tensor, distances: Tensor
) -> Iterator[tuple[slice, Tensor]]:
    """Some rows at a time, and their scores, which may be overwritten."""
    (M, Q, _), N = query.shape, key.size(1)
    step = min(Q, max(1, TILE // (M * N)))
    room = query.new_empty(M * step * N)
    query, key, bias = query.detach(), key.detach(), bias.detach()
    for start in range(0, Q, step):
        rows = slice(start, min(start + step, Q))
        scores = room[: M * (rows.stop - start) * N].view(M, -1, N)
        arrays = [t.numpy() for t in (bias, distances[rows], scores)]
        threads.run(_look_up, scores.size(1), *arrays)
        yield rows, scores.baddbmm_(query[:, rows], key.mT)


@_attention.register_fake
def _(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, distances: Tensor
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(query), query.new_empty(*query.shape[:2], 1)


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)


def _autograd(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    return *_backward(grad.contiguous(), *ctx.saved_tensors), None


_attention.register_autograd(_autograd, setup_context=_setup_context)


@njit(cache=True, error_model="numpy", nogil=True)
def _look_up(thread: int, threads: int, bias: Any, distances: Any, out: Any) -> None:
    M, Q, N = out.shape
    for i in range(thread * Q // threads, (thread + 1) * Q // threads):
        for m in range(M):
            for j in range(N):
                out[m, i, j] = bias[m, distances[i, j]]


@njit(cache=True, error_model="numpy", nogil=True)
def _add_up(thread: int, threads: int, grad: Any, distances: Any, sums: Any) -> None:
    M, Q, N = grad.shape
    for i in range(thread * Q // threads, (thread + 1) * Q // threads):
        for m in range(M):
            for j in range(N):
                sums[i, m, distances[i, j]] += grad[m, i, j]
