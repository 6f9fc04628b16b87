"""The loops of fused scored attention for the CPU, compiled by numba.

They are those of ``dgt.ops.deformable_attention.loops`` with one more step: the rows that a query
reads are first multiplied with its probe, which changes their weights. They are then in the cache,
so that reading them a second time costs little.
"""

from typing import Any

import numpy as np
from numba import njit

from dgt.ops.deformable_attention.loops import (
    FAST,
    copy_in,
    copy_out,
    fill_windows,
    length_of,
    sample_keys,
    total_of,
)
from dgt.ops.deformable_attention.simd import (
    add_scaled,
    exp,
    gather_dot,
    gather_sum,
    prefetch,
    sum_scatter,
)


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def _find(
    sequences: Any, query: Any, skip: int, q: int, t: int, m: int,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, D: Any, W: Any, K2: Any, KW: Any,
    plane: Any, w: Any, sampled: Any, g: Any, first: Any, total: Any,
    rows: Any, positions: Any, weights: Any, begin: int,
) -> tuple[int, int, bool]:  # fmt: skip
    """Finds the rows that the keys of one head read, their positions in the sequence, and their
    weights before the scores, and writes them to the buffers from index ``begin`` on.

    Returns the index after the last row, the length of the sequence without the positions that are
    skipped, and whether all node indices
    are valid.
    """
    real = g.dtype.type
    N, K, fine = plane.shape[0], len(K2) // 2, True
    n = max(length_of(sequences, t, q) - skip, 0)
    sample_keys(query, q, t, m, sampled, K2)
    low, high = fill_windows(sampled, n, bilinear, gamma, epsilon, W, KW, g, first)
    for k in range(K):
        total[k] = total_of(g, k * len(W), W) if normalize else real(1)
        add_scaled(w, len(W) + first[k], sampled[K + k] / total[k], g, k * len(W), W)
    end = begin
    for i in range(max(low, 0), min(high, n)):
        if w[len(W) + i] != 0:
            r = np.int64(sequences[t, q, skip + i])
            if r < 0 or r >= N:
                fine = False
                continue
            prefetch(plane, r, D)
            rows[end], positions[end], weights[end] = r, i, w[len(W) + i]
            end += 1
    for i in range(low, high):
        w[len(W) + i] = real(0)
    return end, n, fine


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def _score(
    closeness: Any, probe: Any, skip: int, q: int, t: int, m: int, plane: Any,
    rows: Any, positions: Any, begin: int, end: int, u: Any, factors: Any, D: Any, W: Any,
    weights: Any,
) -> None:  # fmt: skip
    """Multiplies the weights of the rows by the exponentials of their scores, and divides them by
    their sum. Writes these ``factors``, and the probe to ``u``."""
    real = weights.dtype.type
    b = probe[q, t, m, len(D)]
    for c in range(len(D)):
        u[c] = probe[q, t, m, c]
    gather_dot(plane, rows, begin, end, u, 0, factors, D)
    largest = real(-np.inf)
    for i in range(begin, end):
        factors[i] += b * closeness[t, q, skip + positions[i]]
        largest = max(largest, factors[i])
    for i in range(begin, end):
        factors[i] -= largest
    # Whole vectors at a time; the buffer is longer than it needs to be.
    for i in range(begin, end, len(W)):
        exp(factors[i : i + len(W)], W)
    total = real(0)
    for i in range(begin, end):
        total += weights[i] * factors[i]
    for i in range(begin, end):
        factors[i] /= total
        weights[i] *= factors[i]


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def forward(
    thread: int, threads: int,
    values: Any, sequences: Any, closeness: Any, query: Any, probe: Any, skip: int,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, D: Any, W: Any, K2: Any, KW: Any,
    planes: Any, out: Any,
) -> bool:  # fmt: skip
    """Runs the tasks of one thread; ``out`` is flat. Returns False if a node index is invalid."""
    T, M = values.shape[1:3]
    Q, L, K = sequences.shape[1], sequences.shape[2], len(K2) // 2
    plane, half = planes[thread, 0], L + len(W)
    w = np.zeros(L + 2 * len(W), planes.dtype)  # position i is at index len(W) + i
    sampled, g = np.empty(2 * K, planes.dtype), np.empty(len(KW), planes.dtype)
    first, total = np.empty(K, np.int64), np.empty(K, planes.dtype)
    # One query is prepared while the rows of the previous one are on their way to the cache: the
    # first half of these buffers belongs to even queries, the second to odd ones.
    rows, positions = np.empty(2 * half, np.int64), np.empty(2 * half, np.int64)
    weights, factors = np.empty(2 * half, planes.dtype), np.zeros(2 * half, planes.dtype)
    ends, u = np.zeros(2, np.int64), np.empty(len(D), planes.dtype)
    fine = True
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        copy_in(values, t, m, plane, D)
        for step in range(Q + 1):
            if step < Q:
                odd = step % 2
                ends[odd], _, right = _find(
                    sequences, query, skip, step, t, m, bilinear, gamma, epsilon, normalize,
                    D, W, K2, KW, plane, w, sampled, g, first, total, rows, positions, weights,
                    odd * half,
                )  # fmt: skip
                fine = fine and right
            if step > 0:
                q, odd = step - 1, (step - 1) % 2
                begin, end = odd * half, ends[odd]
                _score(
                    closeness, probe, skip, q, t, m, plane, rows, positions, begin, end, u, factors,
                    D, W, weights,
                )  # fmt: skip
                start = ((q * T + t) * M + m) * len(D)
                gather_sum(plane, rows, weights, begin, end, out, start, D)
    return fine


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def backward(
    thread: int, threads: int,
    values: Any, sequences: Any, closeness: Any, query: Any, probe: Any, skip: int,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, D: Any, W: Any, K2: Any, KW: Any,
    planes: Any, grad: Any, grad_values: Any, grad_query: Any, grad_probe: Any,
) -> bool:  # fmt: skip
    """Runs the tasks of one thread; ``grad`` is flat. Returns False if a node index is invalid."""
    real = planes.dtype.type
    T, M = values.shape[1:3]
    Q, L, K = sequences.shape[1], sequences.shape[2], len(K2) // 2
    plane, grad_plane, half = planes[thread, 0], planes[thread, 1], L + len(W)
    # As in the forward pass; ``s`` holds the gradient of each position's weight before the scores.
    w, s = np.zeros((2, L + 2 * len(W)), planes.dtype)
    sampled2, g2 = np.empty((2, 2 * K), planes.dtype), np.empty((2, len(KW)), planes.dtype)
    first2, total2 = np.empty((2, K), np.int64), np.empty((2, K), planes.dtype)
    rows, positions = np.empty(2 * half, np.int64), np.empty(2 * half, np.int64)
    weights, factors = np.empty(2 * half, planes.dtype), np.zeros(2 * half, planes.dtype)
    dots = np.empty(2 * half, planes.dtype)
    ends, lengths = np.zeros(2, np.int64), np.zeros(2, np.int64)
    u, du = np.empty(len(D), planes.dtype), np.empty(len(D), planes.dtype)
    grad_a = np.empty(K, planes.dtype)
    fine = True
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        copy_in(values, t, m, plane, D)
        grad_plane[:] = real(0)
        for step in range(Q + 1):
            if step < Q:
                odd = step % 2
                ends[odd], lengths[odd], right = _find(
                    sequences, query, skip, step, t, m, bilinear, gamma, epsilon, normalize,
                    D, W, K2, KW, plane, w, sampled2[odd], g2[odd], first2[odd], total2[odd],
                    rows, positions, weights, odd * half,
                )  # fmt: skip
                fine = fine and right
                for i in range(odd * half, ends[odd]):
                    prefetch(grad_plane, rows[i], D)
            if step > 0:
                q, odd = step - 1, (step - 1) % 2
                begin, end, n = odd * half, ends[odd], lengths[odd]
                sampled, g, first, total = sampled2[odd], g2[odd], first2[odd], total2[odd]
                _score(
                    closeness, probe, skip, q, t, m, plane, rows, positions, begin, end, u, factors,
                    D, W, weights,
                )  # fmt: skip
                start = ((q * T + t) * M + m) * len(D)
                gather_dot(plane, rows, begin, end, grad, start, dots, D)
                # The weights sum to 1, so that only differences matter. Those from the row with the
                # largest weight stay exact if there is nothing else.
                most, center, mean, b = real(-1), real(0), real(0), real(0)
                for i in range(begin, end):
                    if weights[i] > most:
                        most, center = weights[i], dots[i]
                for i in range(begin, end):
                    dots[i] -= center
                    mean += weights[i] * dots[i]
                for i in range(begin, end):
                    difference = dots[i] - mean
                    s[len(W) + positions[i]] = factors[i] * difference
                    dots[i] = weights[i] * difference  # from here on, the gradient of the score
                    b += dots[i] * closeness[t, q, skip + positions[i]]
                sum_scatter(
                    plane, rows, weights, dots, begin, end, grad, start, u, du, grad_plane, D
                )
                for c in range(len(D)):
                    grad_probe[q, t, m, c] = du[c]
                grad_probe[q, t, m, len(D)] = b
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
                for i in range(begin, end):
                    s[len(W) + positions[i]] = real(0)
        copy_out(grad_plane, grad_values, t, m, D)
    return fine
