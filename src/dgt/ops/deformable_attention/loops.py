"""The loops of fused deformable attention for the CPU, compiled by numba.

Axis letters as in ``reference``: N nodes, Q queries, T criteria, M heads, K keys, L length,
W window, D channels of a head.

A task is one pair of criterion and head. It copies the values of that head into a plane ``(N, D)``,
which fits into the cache where all values would not, and processes the queries in order. No
``(Q, L, D)`` tensor is ever allocated: the weights of a query's windows are computed on the fly,
and again in the backward pass. Each plane of the value gradients is written by one task, which sums
in the order of the queries. The result therefore does not depend on the number of threads.

Compile-time sizes are passed as tuples ``(0,) * n``, whose length is a constant to the compiler: D,
W, K2 = 2 K and KW = K · W.
"""

from typing import Any

import numpy as np
from numba import njit

from dgt.ops.deformable_attention.simd import add_scaled, dot_scatter, exp, gather_sum, prefetch

# Sums may be reordered for vectorization; NaN and infinity are respected.
FAST = {"reassoc", "contract", "arcp", "nsz"}


@njit(cache=True, error_model="numpy", inline="always")
def length_of(sequences: Any, t: int, q: int) -> int:
    """Returns the number of nodes before the padding, by bisection."""
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
def sample_keys(query: Any, q: int, t: int, m: int, sampled: Any, K2: Any) -> None:
    """Writes the offsets and attention of the keys of one head to the two halves of ``sampled``."""
    K = len(K2) // 2
    largest = query[q, 1, t, m, 0]
    for k in range(1, K):
        largest = max(largest, query[q, 1, t, m, k])
    for k in range(K):
        sampled[k] = -query[q, 0, t, m, k]
        sampled[K + k] = query[q, 1, t, m, k] - largest
    exp(sampled, K2)
    total = sampled[K]
    for k in range(1, K):
        total += sampled[K + k]
    for k in range(K):
        sampled[k] = sampled.dtype.type(1) / (sampled.dtype.type(1) + sampled[k])
        sampled[K + k] /= total


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def fill_windows(
    sampled: Any, n: int, bilinear: bool, gamma: Any, epsilon: Any, W: Any, KW: Any,
    g: Any, first: Any,
) -> tuple[int, int]:  # fmt: skip
    """Writes the kernel's weights for the W positions around each key to ``g`` (flat, K windows),
    and the first position of each window to ``first``. Positions outside the sequence get weight 0.

    Returns the first position of all windows and the position after the last.
    """
    real = g.dtype.type
    K, reach = len(KW) // len(W), len(W) // 2
    low, high = n, 0
    for k in range(K):
        p = sampled[k] * real(n - 1)
        # A NaN must not be used as a position; it propagates to the weights instead.
        first[k] = (int(min(p, real(n - 1))) if p >= 0 else 0) - reach + 1
        low, high = min(low, first[k]), max(high, first[k] + len(W))
        for j in range(len(W)):
            distance = p - real(first[k] + j)
            squared = -distance * distance / gamma
            g[k * len(W) + j] = real(1) - abs(distance) if bilinear else squared
    if not bilinear:
        exp(g, KW)
    for k in range(K):
        p, start = sampled[k] * real(n - 1), k * len(W)
        # Only the outermost positions of a window can be further away than epsilon.
        if p - real(first[k]) >= epsilon:
            g[start] = real(0)
        if real(first[k] + len(W) - 1) - p >= epsilon:
            g[start + len(W) - 1] = real(0)
        for j in range(-first[k]):
            g[start + j] = real(0)
        for j in range(n - first[k], len(W)):
            g[start + j] = real(0)
    return low, high


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def total_of(g: Any, start: int, W: Any) -> Any:
    total = g.dtype.type(0)
    for j in range(len(W)):
        total += g[start + j]
    return total if total != 0 else g.dtype.type(1)


@njit(cache=True, error_model="numpy")
def copy_in(values: Any, t: int, m: int, plane: Any, D: Any) -> None:
    for r in range(values.shape[0]):
        for c in range(len(D)):
            plane[r, c] = values[r, t, m, c]


@njit(cache=True, error_model="numpy")
def copy_out(plane: Any, values: Any, t: int, m: int, D: Any) -> None:
    for r in range(values.shape[0]):
        for c in range(len(D)):
            values[r, t, m, c] = plane[r, c]


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def forward(
    thread: int, threads: int, values: Any, sequences: Any, query: Any,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, D: Any, W: Any, K2: Any, KW: Any,
    planes: Any, out: Any,
) -> bool:  # fmt: skip
    """Runs the tasks of one thread; ``out`` is flat. Returns False if a node index is invalid."""
    real = planes.dtype.type
    N, T, M, _ = values.shape
    Q, L, K = sequences.shape[1], sequences.shape[2], len(K2) // 2
    plane = planes[thread, 0]
    sampled, g = np.empty(2 * K, planes.dtype), np.empty(len(KW), planes.dtype)
    first = np.empty(K, np.int64)
    w = np.zeros(L + 2 * len(W), planes.dtype)  # position i is at index len(W) + i
    rows, weights = np.empty(2 * L, np.int64), np.empty(2 * L, planes.dtype)
    ends = np.empty(2, np.int64)
    fine = True
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        copy_in(values, t, m, plane, D)
        for step in range(Q + 1):
            # The rows of query q are prefetched while those of the previous query are summed.
            if step < Q:
                q, begin = step, (step % 2) * L
                n = length_of(sequences, t, q)
                sample_keys(query, q, t, m, sampled, K2)
                low, high = fill_windows(sampled, n, bilinear, gamma, epsilon, W, KW, g, first)
                for k in range(K):
                    a = sampled[K + k]
                    if normalize:
                        a /= total_of(g, k * len(W), W)
                    add_scaled(w, len(W) + first[k], a, g, k * len(W), W)
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
    thread: int, threads: int, values: Any, sequences: Any, query: Any,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, D: Any, W: Any, K2: Any, KW: Any,
    planes: Any, grad: Any, grad_values: Any, grad_query: Any,
) -> bool:  # fmt: skip
    """Runs the tasks of one thread; ``grad`` is flat. Returns False if a node index is invalid."""
    real = planes.dtype.type
    N, T, M, _ = values.shape
    Q, L, K = sequences.shape[1], sequences.shape[2], len(K2) // 2
    plane, grad_plane = planes[thread, 0], planes[thread, 1]
    w = np.zeros(L + 2 * len(W), planes.dtype)  # position i is at index len(W) + i
    s = np.zeros(L + 2 * len(W), planes.dtype)  # each value's product with the upstream gradient
    read = np.zeros(L + 2 * len(W), np.bool_)
    # As in the forward pass, one query is prepared while the rows of the previous one are read: the
    # first row, or half, of these buffers belongs to even queries, the second to odd ones.
    sampled2, g2 = np.empty((2, 2 * K), planes.dtype), np.empty((2, len(KW)), planes.dtype)
    first2, total2 = np.empty((2, K), np.int64), np.empty((2, K), planes.dtype)
    rows, weights = np.empty(2 * L, np.int64), np.empty(2 * L, planes.dtype)
    positions, dots = np.empty(2 * L, np.int64), np.empty(2 * L, planes.dtype)
    ends, lengths = np.empty(2, np.int64), np.empty(2, np.int64)
    grad_a = np.empty(K, planes.dtype)
    fine = True
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        copy_in(values, t, m, plane, D)
        grad_plane[:] = real(0)
        for step in range(Q + 1):
            if step < Q:
                q, begin, odd = step, (step % 2) * L, step % 2
                sampled, g, first, total = sampled2[odd], g2[odd], first2[odd], total2[odd]
                n = length_of(sequences, t, q)
                sample_keys(query, q, t, m, sampled, K2)
                low, high = fill_windows(sampled, n, bilinear, gamma, epsilon, W, KW, g, first)
                for k in range(K):
                    total[k] = total_of(g, k * len(W), W) if normalize else real(1)
                    at = len(W) + first[k]
                    add_scaled(w, at, sampled[K + k] / total[k], g, k * len(W), W)
                    for j in range(len(W)):
                        read[at + j] = True
                end = begin
                for i in range(max(low, 0), min(high, n)):
                    if read[len(W) + i]:
                        r = np.int64(sequences[t, q, i])
                        if r < 0 or r >= N:
                            fine = False
                            continue
                        prefetch(plane, r, D)
                        prefetch(grad_plane, r, D)
                        rows[end], weights[end] = r, w[len(W) + i]
                        positions[end] = len(W) + i
                        end += 1
                ends[odd], lengths[odd] = end, n
                for i in range(low, high):
                    w[len(W) + i] = real(0)
                    read[len(W) + i] = False
            if step > 0:
                q, begin, odd = step - 1, ((step - 1) % 2) * L, (step - 1) % 2
                sampled, g, first, total = sampled2[odd], g2[odd], first2[odd], total2[odd]
                end, n = ends[odd], lengths[odd]
                start = ((q * T + t) * M + m) * len(D)
                dot_scatter(plane, rows, weights, begin, end, grad, start, dots, grad_plane, D)
                for i in range(begin, end):
                    s[positions[i]] = dots[i]
                mean = real(0)  # of the attention's gradients
                for k in range(K):
                    p = sampled[k] * real(n - 1)
                    # Sums over the window of g·s, g'·s and g', where g' = dg/dp.
                    gs, ds, dg = real(0), real(0), real(0)
                    for j in range(len(W)):
                        weight, at = g[k * len(W) + j], first[k] + j
                        distance = p - real(at)
                        slope = weight * real(-2) * distance / gamma
                        if bilinear:
                            slope = real(0)
                            if weight > 0 and distance != 0:
                                slope = real(-1) if distance > 0 else real(1)
                        gs += weight * s[len(W) + at]
                        ds += slope * s[len(W) + at]
                        dg += slope
                    gs /= total[k]
                    if normalize:
                        ds = (ds - gs * dg) / total[k]
                    o, a = sampled[k], sampled[K + k]
                    grad_query[q, 0, t, m, k] = a * ds * real(n - 1) * o * (real(1) - o)
                    grad_a[k] = gs
                    mean += a * gs
                for k in range(K):
                    grad_query[q, 1, t, m, k] = sampled[K + k] * (grad_a[k] - mean)
        copy_out(grad_plane, grad_values, t, m, D)
    return fine
