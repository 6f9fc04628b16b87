"""Distance attention for the CPU: numba looks up the biases and sums their gradients."""

from typing import Any

from numba import njit
from torch import Tensor

from dgt.ops.define import arrays
from dgt.ops.distance_attention import tiles
from dgt.system import threads


def attention(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, distances: Tensor
) -> tuple[Tensor, Tensor]:
    return tiles.forward(look_up, query, key, value, bias, distances)


def attention_backward(grad: Tensor, *inputs: Tensor) -> list[Tensor]:
    return tiles.backward(look_up, add_up, grad, *inputs)


def look_up(bias: Tensor, distances: Tensor, out: Tensor) -> None:
    threads.run(_look_up, out.size(1), *arrays(bias, distances, out))


def add_up(grad: Tensor, distances: Tensor, sums: Tensor) -> None:
    threads.run(_add_up, grad.size(1), *arrays(grad, distances, sums))


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
