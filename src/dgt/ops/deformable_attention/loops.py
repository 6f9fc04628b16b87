"""The loops of fused deformable attention for the CPU, compiled by numba.

Axis letters as in ``reference``: N nodes, Q queries, T criteria, M heads, K keys, L length,
W window, D channels of a head.

A task is one pair of criterion and head. It copies the values of that head into a plane ``(N, D)``,
which fits into the cache where all values would not, and processes the queries in order. No
``(Q, L, D)`` tensor is ever allocated: the weights of a query's windows are computed on the fly,
and again in the backward pass. Each plane of the value gradients is written by one task, which sums
in the order of the queries. The result therefore does not depend on the number of threads.

Compile-time sizes are passed as tuples ``(0,) * n``, whose length is a constant to the compiler: D,
W and K.
"""

from typing import Any

import numpy as np
from numba import njit

from dgt.ops.deformable_attention.simd import (
    add_scaled,
    dot_scatter,
    fill,
    fill_window,
    find_rows,
    gather_sum,
    prefetch,
    prefetch_at,
    sample,
    window_sums,
)

# Sums may be reordered for vectorization; NaN and infinity are respected.
FAST = {"reassoc", "contract", "arcp", "nsz"}
AHEAD = 4
"""Number of queries by which their inputs are prefetched ahead."""


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


@njit(cache=True, error_model="numpy", inline="always")
def prefetch_query(query: Any, sequences: Any, q: int, t: int, m: int, K: Any) -> None:
    """Prefetches the sequence of a query and its keys of one head."""
    _, _, T, M, _ = query.shape
    _, Q, L = sequences.shape
    prefetch_at(query, (2 * q * T * M + t * M + m) * len(K))
    prefetch_at(query, ((2 * q + 1) * T * M + t * M + m) * len(K))
    prefetch_at(sequences, (t * Q + q) * L)


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def sample_keys(query: Any, q: int, t: int, m: int, sampled: Any, K: Any) -> None:
    """Writes the offsets and attention of the keys of one head to the two halves of ``sampled``."""
    _, _, T, M, _ = query.shape
    head = t * M + m
    offsets = (2 * q * T * M + head) * len(K)
    sample(query, offsets, offsets + T * M * len(K), sampled, K)


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def fill_windows(
    sampled: Any, n: int, bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, W: Any, K: Any,
    g: Any, first: Any, total: Any,
) -> tuple[int, int]:  # fmt: skip
    """Writes the kernel's weights for the W positions around each key to ``g`` (flat, K windows),
    the first position of each window to ``first``, and its sum, or 1, to ``total``. Positions
    outside the sequence get weight 0.

    Returns the first position of all windows and the position after the last.
    """
    real = g.dtype.type
    reach = len(W) // 2
    low, high = n, 0
    for k in range(len(K)):
        p, start = sampled[k] * real(n - 1), k * len(W)
        # A NaN must not be used as a position; it propagates to the weights instead.
        begin = (int(min(p, real(n - 1))) if p >= 0 else 0) - reach + 1
        low, high = min(low, begin), max(high, begin + len(W))
        if bilinear:
            found = fill_bilinear(g, start, p, begin, n, W)
        else:
            found = fill_window(g, start, p, begin, n, gamma, epsilon, W)
        first[k] = begin
        total[k] = found if normalize and found != 0 else real(1)
    return low, high


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def fill_bilinear(g: Any, start: int, p: Any, first: int, n: int, W: Any) -> Any:
    """Writes the weights of the two positions around ``p``, and returns their sum."""
    real = g.dtype.type
    total = real(0)
    for j in range(len(W)):
        distance = abs(p - real(first + j))
        outside = distance >= 1 or first + j < 0 or first + j >= n
        g[start + j] = real(0) if outside else real(1) - distance
        total += g[start + j]
    return total


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def key_sums(
    g: Any, start: int, s: Any, p: Any, first: int, bilinear: bool, gamma: Any, W: Any
) -> tuple[Any, Any, Any]:
    """Returns the sums of g·s, g'·s and g' over the window of a key, where g' = dg/dp. The value of
    position i is at s[len(W) + i]."""
    real = g.dtype.type
    if not bilinear:
        return window_sums(g, start, s, len(W) + first, p, first, gamma, W)
    gs, ds, dg = real(0), real(0), real(0)
    for j in range(len(W)):
        weight, distance = g[start + j], p - real(first + j)
        slope = real(0)
        if weight > 0 and distance != 0:
            slope = real(-1) if distance > 0 else real(1)
        gs += weight * s[len(W) + first + j]
        ds += slope * s[len(W) + first + j]
        dg += slope
    return gs, ds, dg


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def key_gradients(
    sampled: Any, n: int, bilinear: bool, gamma: Any, normalize: bool, W: Any, K: Any,
    g: Any, first: Any, total: Any, s: Any, grad_a: Any, grad_query: Any, q: int, t: int, m: int,
) -> None:  # fmt: skip
    """Writes the gradients of the offsets and the attention of one head's keys, given the gradient
    of the weight of each position, that of position i at s[len(W) + i]."""
    real = g.dtype.type
    mean = real(0)  # of the attention's gradients
    for k in range(len(K)):
        p = sampled[k] * real(n - 1)
        gs, ds, dg = key_sums(g, k * len(W), s, p, first[k], bilinear, gamma, W)
        gs /= total[k]
        if normalize:
            ds = (ds - gs * dg) / total[k]
        o, a = sampled[k], sampled[len(K) + k]
        grad_query[q, 0, t, m, k] = a * ds * real(n - 1) * o * (real(1) - o)
        grad_a[k] = gs
        mean += a * gs
    for k in range(len(K)):
        grad_query[q, 1, t, m, k] = sampled[len(K) + k] * (grad_a[k] - mean)


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
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, D: Any, W: Any, K: Any,
    planes: Any, out: Any,
) -> bool:  # fmt: skip
    """Runs the tasks of one thread; ``out`` is flat. Returns False if a node index is invalid."""
    real = planes.dtype.type
    N, T, M, _ = values.shape
    Q, L = sequences.shape[1], sequences.shape[2]
    plane = planes[thread]
    sampled, g = np.empty(2 * len(K), planes.dtype), np.empty(len(K) * len(W), planes.dtype)
    first, total = np.empty(len(K), np.int64), np.empty(len(K), planes.dtype)
    w = np.zeros(L + 2 * len(W), planes.dtype)  # position i is at index len(W) + i
    rows, positions = np.empty(2 * L, np.int64), np.empty(2 * L, np.int64)
    weights, ends = np.empty(2 * L, planes.dtype), np.empty(2, np.int64)
    fine = True
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        copy_in(values, t, m, plane, D)
        for step in range(Q + 1):
            # The rows of query q are prefetched while those of the previous query are summed.
            if step < Q:
                q, begin = step, (step % 2) * L
                prefetch_query(query, sequences, q + AHEAD, t, m, K)
                prefetch_at(out, (((q + AHEAD) * T + t) * M + m) * len(D))
                n = length_of(sequences, t, q)
                sample_keys(query, q, t, m, sampled, K)
                low, high = fill_windows(
                    sampled, n, bilinear, gamma, epsilon, normalize, W, K, g, first, total
                )
                for k in range(len(K)):
                    a = sampled[len(K) + k] / total[k]
                    add_scaled(w, len(W) + first[k], a, g, k * len(W), W)
                end, wrong = find_rows(
                    w, w, len(W), sequences, (t * Q + q) * L, max(low, 0), min(high, n), plane, N,
                    rows, positions, weights, begin, D,
                )  # fmt: skip
                fine = fine and wrong == 0
                ends[step % 2] = end
                for k in range(len(K)):
                    fill(w, len(W) + first[k], real(0), W)
            if step > 0:
                q, begin = step - 1, ((step - 1) % 2) * L
                start = ((q * T + t) * M + m) * len(D)
                gather_sum(plane, rows, weights, begin, ends[(step - 1) % 2], out, start, D)
    return fine


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def backward(
    thread: int, threads: int, values: Any, sequences: Any, query: Any,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, D: Any, W: Any, K: Any,
    planes: Any, sums: Any, grad: Any, grad_values: Any, grad_query: Any,
) -> bool:  # fmt: skip
    """Runs the tasks of one thread; ``grad`` is flat. The gradients of values are added up in
    ``sums``, which may be in double precision. Returns False if a node index is invalid."""
    real = planes.dtype.type
    N, T, M, _ = values.shape
    Q, L = sequences.shape[1], sequences.shape[2]
    plane, grad_plane = planes[thread], sums[thread]
    w = np.zeros(L + 2 * len(W), planes.dtype)  # position i is at index len(W) + i
    s = np.zeros(L + 2 * len(W), planes.dtype)  # each value's product with the upstream gradient
    read = np.zeros(L + 2 * len(W), planes.dtype)  # 1 where a window lies
    # As in the forward pass, one query is prepared while the rows of the previous one are read: the
    # first row, or half, of these buffers belongs to even queries, the second to odd ones.
    sampled2 = np.empty((2, 2 * len(K)), planes.dtype)
    g2 = np.empty((2, len(K) * len(W)), planes.dtype)
    first2, total2 = np.empty((2, len(K)), np.int64), np.empty((2, len(K)), planes.dtype)
    rows, weights = np.empty(2 * L, np.int64), np.empty(2 * L, planes.dtype)
    positions, dots = np.empty(2 * L, np.int64), np.empty(2 * L, planes.dtype)
    ends, lengths = np.empty(2, np.int64), np.empty(2, np.int64)
    grad_a = np.empty(len(K), planes.dtype)
    fine = True
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        copy_in(values, t, m, plane, D)
        grad_plane[:] = 0
        for step in range(Q + 1):
            if step < Q:
                q, begin, odd = step, (step % 2) * L, step % 2
                prefetch_query(query, sequences, q + AHEAD, t, m, K)
                prefetch_at(grad, (((q + AHEAD) * T + t) * M + m) * len(D))
                sampled, g, first, total = sampled2[odd], g2[odd], first2[odd], total2[odd]
                n = length_of(sequences, t, q)
                sample_keys(query, q, t, m, sampled, K)
                low, high = fill_windows(
                    sampled, n, bilinear, gamma, epsilon, normalize, W, K, g, first, total
                )
                for k in range(len(K)):
                    at = len(W) + first[k]
                    add_scaled(w, at, sampled[len(K) + k] / total[k], g, k * len(W), W)
                    fill(read, at, real(1), W)
                end, wrong = find_rows(
                    w, read, len(W), sequences, (t * Q + q) * L, max(low, 0), min(high, n), plane,
                    N, rows, positions, weights, begin, D,
                )  # fmt: skip
                fine = fine and wrong == 0
                for i in range(begin, end):
                    prefetch(grad_plane, rows[i], D)
                ends[odd], lengths[odd] = end, n
                for k in range(len(K)):
                    fill(w, len(W) + first[k], real(0), W)
                    fill(read, len(W) + first[k], real(0), W)
            if step > 0:
                q, begin, odd = step - 1, ((step - 1) % 2) * L, (step - 1) % 2
                sampled, g, first, total = sampled2[odd], g2[odd], first2[odd], total2[odd]
                end, n = ends[odd], lengths[odd]
                start = ((q * T + t) * M + m) * len(D)
                dot_scatter(plane, rows, weights, begin, end, grad, start, dots, grad_plane, D)
                for i in range(begin, end):
                    s[len(W) + positions[i]] = dots[i]
                key_gradients(
                    sampled, n, bilinear, gamma, normalize, W, K, g, first, total, s, grad_a,
                    grad_query, q, t, m,
                )  # fmt: skip
        copy_out(grad_plane, grad_values, t, m, D)
    return fine
