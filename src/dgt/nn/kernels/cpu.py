"""Deformable attention fused for the CPU, with numba.

Axis letters as in :mod:`dgt.nn.interpolation`: N nodes, Q queries, T criteria, M heads, K keys,
L length, W window, D channels of a head.

A task is one (criterion, head). It copies that head's values into a plane ``(N, D)``, small enough
to stay in the cache where the whole of the values would not, and goes through the queries in order.
No ``(Q, L, D)`` tensor ever exists: the weights of a query's windows are built on the fly, in the
backward pass once more. As a task alone writes its plane of the value gradients, and sums in the
order of the queries, the result does not depend on the number of threads.

D and W come as tuples ``(0,) * D``: the length of a tuple is a constant of the compiled code, so
that loops over channels and windows become a few vector instructions.
"""

import math
from typing import Any

import numpy as np
from numba import njit

from dgt.nn.kernels.simd import dot_scatter, gather_sum

# Sums may be reordered for the vector units; nothing assumes the absence of NaN or infinity.
FAST = {"reassoc", "contract", "arcp", "nsz"}


@njit(cache=True, error_model="numpy")
def _length(sequences: Any, t: int, q: int) -> int:
    """The number of nodes before the padding, by bisection."""
    low, high = 0, sequences.shape[2]
    if sequences[t, q, high - 1] >= 0:
        return high
    while low < high:
        middle = (low + high) // 2
        if sequences[t, q, middle] >= 0:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, fastmath=FAST, error_model="numpy")
def _window(
    p: Any, n: int, bilinear: bool, gamma: Any, epsilon: Any, table: Any, W: Any, g: Any, k: int
) -> int:
    """Writes the weights of the W positions around ``p`` into ``g[k]``; returns the first position.

    With c = floor(p) and f = p - c, the weight of position c + s is
    exp(-(f - s)²/gamma) = exp(-f²/gamma) · exp(2f/gamma)^s · exp(-s²/gamma):
    two calls of exp for a whole window. ``table`` holds exp(-s²/gamma) for s = 1 - W/2 … W/2.
    Positions outside of the sequence weigh nothing.
    """
    real = g.dtype.type
    reach = len(W) // 2
    # A p that is not a number must not name a position: it becomes the weights' NaN.
    c = int(min(p, real(n - 1))) if p >= 0 else 0
    f = p - real(c)
    first = c - reach + 1
    if bilinear:
        g[k, 0] = real(1) - f
        g[k, 1] = f
    else:
        centre = math.exp(-f * f / gamma)
        up = math.exp((f + f) / gamma)
        down = real(1) / up
        power = centre
        for s in range(reach):
            g[k, reach - 1 - s] = power * table[reach - 1 - s]
            # Where the table has fallen to zero, the power must not grow to infinity.
            power = power * down if table[reach - 1 - s] > 0 else real(0)
        power = centre
        for s in range(reach):
            power = power * up if table[reach + s] > 0 else real(0)
            g[k, reach + s] = power * table[reach + s]
    for j in range(len(W)):
        i = first + j
        if i < 0 or i >= n or abs(p - real(i)) >= epsilon:
            g[k, j] = real(0)
    return first


@njit(cache=True, fastmath=FAST, error_model="numpy")
def _total(g: Any, k: int, W: Any) -> Any:
    total = g.dtype.type(0)
    for j in range(len(W)):
        total += g[k, j]
    return total if total != 0 else g.dtype.type(1)


@njit(cache=True, error_model="numpy")
def _copy_in(values: Any, t: int, m: int, plane: Any, D: Any) -> None:
    for r in range(values.shape[0]):
        for c in range(len(D)):
            plane[r, c] = values[r, t, m, c]


@njit(cache=True, error_model="numpy")
def _copy_out(plane: Any, values: Any, t: int, m: int, D: Any) -> None:
    for r in range(values.shape[0]):
        for c in range(len(D)):
            values[r, t, m, c] = plane[r, c]


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def forward(
    thread: int, threads: int, values: Any, sequences: Any, offsets: Any, attention: Any,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, table: Any, D: Any, W: Any,
    planes: Any, out: Any,
) -> bool:  # fmt: skip
    """The tasks of one thread; ``out`` is flat. False if a sequence names a node that is none."""
    real = planes.dtype.type
    N, T, M, _ = values.shape
    Q, L, K = sequences.shape[1], sequences.shape[2], offsets.shape[3]
    plane = planes[thread, 0]
    g = np.empty((K, len(W)), planes.dtype)
    w = np.zeros(L + 2 * len(W), planes.dtype)  # position i stands at len(W) + i
    rows, weights = np.empty(L, np.int64), np.empty(L, planes.dtype)
    fine = True
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        _copy_in(values, t, m, plane, D)
        for q in range(Q):
            n = _length(sequences, t, q)
            low, high = n, 0
            for k in range(K):
                p = offsets[q, t, m, k] * real(n - 1)
                first = _window(p, n, bilinear, gamma, epsilon, table, W, g, k)
                a = attention[q, t, m, k]
                if normalize:
                    a /= _total(g, k, W)
                for j in range(len(W)):
                    w[len(W) + first + j] += a * g[k, j]
                low, high = min(low, first), max(high, first + len(W))
            size = 0
            for i in range(max(low, 0), min(high, n)):
                r = sequences[t, q, i]
                if r < 0 or r >= N:
                    fine = False
                elif w[len(W) + i] != 0:
                    rows[size], weights[size] = r, w[len(W) + i]
                    size += 1
            w[len(W) + low : len(W) + high] = real(0)
            gather_sum(plane, rows, weights, size, out, ((q * T + t) * M + m) * len(D), D)
    return fine


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def backward(
    thread: int, threads: int, values: Any, sequences: Any, offsets: Any, attention: Any,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, table: Any, D: Any, W: Any,
    planes: Any, grad: Any, grad_values: Any, grad_offsets: Any, grad_attention: Any,
) -> None:  # fmt: skip
    """The tasks of one thread, after :func:`forward` has passed; ``grad`` is flat."""
    real = planes.dtype.type
    _, T, M, _ = values.shape
    Q, L, K = sequences.shape[1], sequences.shape[2], offsets.shape[3]
    plane, grad_plane = planes[thread, 0], planes[thread, 1]
    g = np.empty((K, len(W)), planes.dtype)
    first, total = np.empty(K, np.int64), np.empty(K, planes.dtype)
    w = np.zeros(L + 2 * len(W), planes.dtype)  # position i stands at len(W) + i
    s = np.zeros(L + 2 * len(W), planes.dtype)  # each value's product with the upstream gradient
    read = np.zeros(L + 2 * len(W), np.bool_)
    rows, weights = np.empty(L, np.int64), np.empty(L, planes.dtype)
    positions, dots = np.empty(L, np.int64), np.empty(L, planes.dtype)
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        _copy_in(values, t, m, plane, D)
        grad_plane[:] = real(0)
        for q in range(Q):
            n = _length(sequences, t, q)
            low, high = n, 0
            for k in range(K):
                p = offsets[q, t, m, k] * real(n - 1)
                first[k] = _window(p, n, bilinear, gamma, epsilon, table, W, g, k)
                total[k] = _total(g, k, W) if normalize else real(1)
                a = attention[q, t, m, k] / total[k]
                for j in range(len(W)):
                    w[len(W) + first[k] + j] += a * g[k, j]
                    read[len(W) + first[k] + j] = True
                low, high = min(low, first[k]), max(high, first[k] + len(W))
            size = 0
            for i in range(max(low, 0), min(high, n)):
                if read[len(W) + i]:
                    rows[size], weights[size] = sequences[t, q, i], w[len(W) + i]
                    positions[size] = len(W) + i
                    size += 1
            start = ((q * T + t) * M + m) * len(D)
            dot_scatter(plane, rows, weights, size, grad, start, dots, grad_plane, D)
            for i in range(size):
                s[positions[i]] = dots[i]
            w[len(W) + low : len(W) + high] = real(0)
            read[len(W) + low : len(W) + high] = False
            for k in range(K):
                p = offsets[q, t, m, k] * real(n - 1)
                # Sums over the window of g·s, g'·s and g', with g' the derivative for p.
                gs, ds, dg = real(0), real(0), real(0)
                for j in range(len(W)):
                    distance = p - real(first[k] + j)
                    slope = g[k, j] * real(-2) * distance / gamma
                    if bilinear:
                        slope = real(0)
                        if g[k, j] > 0 and distance != 0:
                            slope = real(-1) if distance > 0 else real(1)
                    gs += g[k, j] * s[len(W) + first[k] + j]
                    ds += slope * s[len(W) + first[k] + j]
                    dg += slope
                gs /= total[k]
                if normalize:
                    ds = (ds - gs * dg) / total[k]
                grad_attention[q, t, m, k] = gs
                grad_offsets[q, t, m, k] = attention[q, t, m, k] * ds * real(n - 1)
        _copy_out(grad_plane, grad_values, t, m, D)
