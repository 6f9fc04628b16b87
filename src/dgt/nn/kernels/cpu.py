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

from dgt.nn.kernels.simd import dot_scatter, gather_sum, prefetch

# Sums may be reordered for the vector units; nothing assumes the absence of NaN or infinity.
FAST = {"reassoc", "contract", "arcp", "nsz"}


@njit(cache=True, error_model="numpy", inline="always")
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


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
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
            power *= down
        power = centre
        for s in range(reach):
            power *= up
            g[k, reach + s] = power * table[reach + s]
    # Only the outermost positions of a window can lie beyond epsilon.
    if p - real(first) >= epsilon:
        g[k, 0] = real(0)
    if real(first + len(W) - 1) - p >= epsilon:
        g[k, len(W) - 1] = real(0)
    for j in range(-first):
        g[k, j] = real(0)
    for j in range(n - first, len(W)):
        g[k, j] = real(0)
    return first


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
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
    rows, weights = np.empty(2 * L, np.int64), np.empty(2 * L, planes.dtype)
    ends = np.empty(2, np.int64)
    fine = True
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        _copy_in(values, t, m, plane, D)
        for step in range(Q + 1):
            # The rows of query q are asked for while those of the query before it are summed.
            if step < Q:
                q, begin = step, (step % 2) * L
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
                end = begin
                for i in range(max(low, 0), min(high, n)):
                    r = sequences[t, q, i]
                    if r < 0 or r >= N:
                        fine = False
                    elif w[len(W) + i] != 0:
                        prefetch(plane, np.int64(r), D)
                        rows[end], weights[end] = r, w[len(W) + i]
                        end += 1
                ends[step % 2] = end
                for i in range(low, high):
                    w[len(W) + i] = real(0)
            if step > 0:
                q, begin = step - 1, ((step - 1) % 2) * L
                start = ((q * T + t) * M + m) * len(D)
                gather_sum(plane, rows, weights, begin, ends[(step - 1) % 2], out, start, D)
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
    w = np.zeros(L + 2 * len(W), planes.dtype)  # position i stands at len(W) + i
    s = np.zeros(L + 2 * len(W), planes.dtype)  # each value's product with the upstream gradient
    read = np.zeros(L + 2 * len(W), np.bool_)
    # As in the forward pass, one query is prepared while the rows of the one before it are read:
    # the first half of each array belongs to even queries, the second to odd ones.
    g = np.empty((2 * K, len(W)), planes.dtype)
    first, total = np.empty(2 * K, np.int64), np.empty(2 * K, planes.dtype)
    rows, weights = np.empty(2 * L, np.int64), np.empty(2 * L, planes.dtype)
    positions, dots = np.empty(2 * L, np.int64), np.empty(2 * L, planes.dtype)
    ends, lengths = np.empty(2, np.int64), np.empty(2, np.int64)
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        _copy_in(values, t, m, plane, D)
        grad_plane[:] = real(0)
        for step in range(Q + 1):
            if step < Q:
                q, begin, odd = step, (step % 2) * L, (step % 2) * K
                n = _length(sequences, t, q)
                low, high = n, 0
                for k in range(K):
                    p = offsets[q, t, m, k] * real(n - 1)
                    start = _window(p, n, bilinear, gamma, epsilon, table, W, g, odd + k)
                    first[odd + k] = start
                    total[odd + k] = _total(g, odd + k, W) if normalize else real(1)
                    a = attention[q, t, m, k] / total[odd + k]
                    for j in range(len(W)):
                        w[len(W) + start + j] += a * g[odd + k, j]
                        read[len(W) + start + j] = True
                    low, high = min(low, start), max(high, start + len(W))
                end = begin
                for i in range(max(low, 0), min(high, n)):
                    if read[len(W) + i]:
                        r = np.int64(sequences[t, q, i])
                        prefetch(plane, r, D)
                        prefetch(grad_plane, r, D)
                        rows[end], weights[end] = r, w[len(W) + i]
                        positions[end] = len(W) + i
                        end += 1
                ends[step % 2], lengths[step % 2] = end, n
                for i in range(low, high):
                    w[len(W) + i] = real(0)
                    read[len(W) + i] = False
            if step > 0:
                q, begin, odd = step - 1, ((step - 1) % 2) * L, ((step - 1) % 2) * K
                end, n = ends[q % 2], lengths[q % 2]
                start = ((q * T + t) * M + m) * len(D)
                dot_scatter(plane, rows, weights, begin, end, grad, start, dots, grad_plane, D)
                for i in range(begin, end):
                    s[positions[i]] = dots[i]
                for k in range(K):
                    p = offsets[q, t, m, k] * real(n - 1)
                    # Sums over the window of g·s, g'·s and g', with g' the derivative for p.
                    gs, ds, dg = real(0), real(0), real(0)
                    for j in range(len(W)):
                        weight, at = g[odd + k, j], first[odd + k] + j
                        distance = p - real(at)
                        slope = weight * real(-2) * distance / gamma
                        if bilinear:
                            slope = real(0)
                            if weight > 0 and distance != 0:
                                slope = real(-1) if distance > 0 else real(1)
                        gs += weight * s[len(W) + at]
                        ds += slope * s[len(W) + at]
                        dg += slope
                    gs /= total[odd + k]
                    if normalize:
                        ds = (ds - gs * dg) / total[odd + k]
                    grad_attention[q, t, m, k] = gs
                    grad_offsets[q, t, m, k] = attention[q, t, m, k] * ds * real(n - 1)
        _copy_out(grad_plane, grad_values, t, m, D)
