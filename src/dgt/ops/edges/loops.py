"""The loops of the fused operations on edges, compiled by numba.

Each call processes the rows of one thread. No two threads write to the same memory.
"""

from typing import Any

import numpy as np
from numba import njit

from dgt.ops.define import FAST


@njit(cache=True, error_model="numpy", nogil=True)
def transpose(crow: Any, col: Any, columns: int) -> tuple[Any, Any, Any]:
    """Sorts the edges by column, so that sums over columns gather instead of scatter.

    Returns the first edge of each column, and the row and the original index of each edge.
    """
    start = np.zeros(columns + 1, np.int64)
    for j in col:
        start[j + 1] += 1
    for j in range(columns):
        start[j + 1] += start[j]
    row, edge, at = np.empty_like(col), np.empty_like(col), start.copy()
    for i in range(len(crow) - 1):
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            row[at[j]], edge[at[j]] = i, e
            at[j] += 1
    return start, row, edge


@njit(**FAST)
def weighted_sum(
    thread: int, threads: int, start: Any, other: Any, edge: Any, weights: Any, values: Any,
    out: Any,
) -> None:  # fmt: skip
    N, H, C = out.shape
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        out[i] = 0
        for at in range(start[i], start[i + 1]):
            j, e = other[at], edge[at]
            for h in range(H):
                w = weights[e, h]
                for c in range(C):
                    out[i, h, c] += w * values[j, h, c]


@njit(**FAST)
def dot(thread: int, threads: int, crow: Any, col: Any, queries: Any, keys: Any, out: Any) -> None:
    N, H, C = queries.shape
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            for h in range(H):
                total = out.dtype.type(0)
                for c in range(C):
                    total += queries[i, h, c] * keys[j, h, c]
                out[e, h] = total


@njit(**FAST)
def leaky(
    thread: int, threads: int, crow: Any, col: Any, targets: Any, sources: Any, a: Any, out: Any,
    slope: Any,
) -> None:  # fmt: skip
    N, H, C = targets.shape
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            for h in range(H):
                total = out.dtype.type(0)
                for c in range(C):
                    z = targets[i, h, c] + sources[j, h, c]
                    total += a[h, c] * (z if z > 0 else slope * z)
                out[e, h] = total


@njit(**FAST)
def leaky_gradient(
    thread: int, threads: int, start: Any, other: Any, edge: Any, grad: Any, a: Any, mine: Any,
    theirs: Any, out: Any, of_a: Any, slope: Any,
) -> None:  # fmt: skip
    N, H, C = mine.shape
    one = out.dtype.type(1)
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        out[i] = 0
        if of_a.size:
            of_a[i] = 0
        for at in range(start[i], start[i + 1]):
            j, e = other[at], edge[at]
            for h in range(H):
                g = grad[e, h]
                for c in range(C):
                    z = mine[i, h, c] + theirs[j, h, c]
                    s = one if z > 0 else slope
                    out[i, h, c] += g * a[h, c] * s
                    if of_a.size:
                        of_a[i, h, c] += g * z * s


@njit(**FAST)
def _direction(places: Any, i: int, j: int, near: float, u: Any) -> Any:
    """Writes the direction from i to j to ``u``. Returns the distance, or 0 if below ``near``."""
    squares = u.dtype.type(0)
    for c in range(len(u)):
        u[c] = places[j, c] - places[i, c]
        squares += u[c] * u[c]
    apart = np.sqrt(squares)
    if apart < near:
        u[:] = 0
        return u.dtype.type(0)
    u /= apart
    return apart


@njit(**FAST)
def direct(
    thread: int, threads: int, crow: Any, col: Any, places: Any, kernels: Any, out: Any, near: float
) -> None:
    N, C = places.shape
    H = kernels.shape[1]
    u = np.empty(C, places.dtype)
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            _direction(places, i, j, near, u)
            for h in range(H):
                total = kernels[i, h, C] if i == j else out.dtype.type(0)
                for c in range(C):
                    total += kernels[i, h, c] * u[c]
                out[e, h] = total


@njit(**FAST)
def direct_gradient(
    thread: int, threads: int, grad: Any, crow: Any, col: Any, places: Any, kernels: Any,
    grad_places: Any, grad_kernels: Any, steps: Any, near: float,
) -> None:  # fmt: skip
    N, C = places.shape
    H = kernels.shape[1]
    u = np.empty(C, places.dtype)
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        grad_places[i] = 0
        grad_kernels[i] = 0
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            apart = _direction(places, i, j, near, u)
            steps[e] = 0
            for h in range(H):
                g = grad[e, h]
                if i == j:
                    grad_kernels[i, h, C] += g
                for c in range(C):
                    grad_kernels[i, h, c] += g * u[c]
                    steps[e, c] += g * kernels[i, h, c]
            if apart == 0:
                steps[e] = 0
                continue
            # A step along the direction does not change the direction.
            along = u.dtype.type(0)
            for c in range(C):
                along += steps[e, c] * u[c]
            for c in range(C):
                steps[e, c] = (steps[e, c] - along * u[c]) / apart
                grad_places[i, c] -= steps[e, c]


@njit(**FAST)
def normalize(thread: int, threads: int, crow: Any, scores: Any, out: Any) -> None:
    N, H = len(crow) - 1, scores.shape[1]
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for h in range(H):
            largest = -np.inf
            for e in range(crow[i], crow[i + 1]):
                largest = max(largest, scores[e, h])
            total = out.dtype.type(0)
            for e in range(crow[i], crow[i + 1]):
                out[e, h] = np.exp(scores[e, h] - out.dtype.type(largest))
                total += out[e, h]
            for e in range(crow[i], crow[i + 1]):
                out[e, h] /= total


@njit(**FAST)
def normalize_gradient(
    thread: int, threads: int, crow: Any, weights: Any, grad: Any, out: Any
) -> None:
    N, H = len(crow) - 1, weights.shape[1]
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for h in range(H):
            along = out.dtype.type(0)
            for e in range(crow[i], crow[i + 1]):
                along += weights[e, h] * grad[e, h]
            for e in range(crow[i], crow[i + 1]):
                out[e, h] = weights[e, h] * (grad[e, h] - along)
