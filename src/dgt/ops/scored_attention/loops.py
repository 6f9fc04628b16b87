"""The loops of fused scored attention for the CPU, compiled by numba.

They are those of ``dgt.ops.deformable_attention.loops`` with one more step: the rows that a query
reads are first multiplied with its probe, which changes their weights. They are then in the cache,
so that reading them a second time costs little.
"""

from typing import Any

import numpy as np
from numba import njit

from dgt.ops.deformable_attention.loops import (
    AHEAD,
    FAST,
    copy_in,
    copy_out,
    fill_windows,
    key_gradients,
    length_of,
    prefetch_query,
    sample_keys,
)
from dgt.ops.deformable_attention.simd import (
    add_scaled,
    fill,
    gather_sum,
    prefetch,
    prefetch_at,
)
from dgt.ops.deformable_attention.vectors import LANES
from dgt.ops.scored_attention.runs import copy_back, copy_run, find_runs
from dgt.ops.scored_attention.simd import gather_dots, score, score_gradients, sum_scatter

GROUP = (0,) * LANES


@njit(cache=True, fastmath=FAST, error_model="numpy", inline="always")
def _find(
    sequences: Any, query: Any, skip: int, q: int, t: int, m: int,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, D: Any, W: Any, K: Any,
    plane: Any, w: Any, sampled: Any, g: Any, first: Any, total: Any,
    closeness: Any, runs: Any, rows: Any, weights: Any, close: Any, begin: int,
) -> tuple[int, int, int, bool]:  # fmt: skip
    """Finds the runs of positions that the keys of one head read, and writes their rows, their
    weights before the scores and their closeness to the buffers from index ``begin`` on. Copies of
    the last row with weight 0 follow, so that a loop can read whole groups.

    Returns the index after the last row, the length of the sequence without the positions that are
    skipped, the number of runs, and whether all node indices are valid.
    """
    real = g.dtype.type
    n = max(length_of(sequences, t, q) - skip, 0)
    sample_keys(query, q, t, m, sampled, K)
    fill_windows(sampled, n, bilinear, gamma, epsilon, normalize, W, K, g, first, total)
    for k in range(len(K)):
        add_scaled(w, len(W) + first[k], sampled[len(K) + k] / total[k], g, k * len(W), W)
    _, Q, L = sequences.shape
    start, end, wrong = (t * Q + q) * L + skip, begin, 0
    count = find_runs(first, n, W, K, runs)
    for r in range(count):
        wrong += copy_run(
            w, len(W), sequences, closeness, start, runs[r, 0], runs[r, 1], plane, plane.shape[0],
            rows, weights, close, end, D,
        )  # fmt: skip
        end += runs[r, 1] - runs[r, 0]
    for k in range(len(K)):
        fill(w, len(W) + first[k], real(0), W)
    if end > begin:
        fill(rows, end, rows[end - 1], GROUP)
        fill(close, end, close[end - 1], GROUP)
        fill(weights, end, real(0), GROUP)
    return end, n, count, wrong == 0


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def forward(
    thread: int, threads: int,
    values: Any, sequences: Any, closeness: Any, query: Any, probe: Any, skip: int,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, D: Any, W: Any, K: Any,
    planes: Any, out: Any,
) -> bool:  # fmt: skip
    """Runs the tasks of one thread; ``out`` is flat. Returns False if a node index is invalid."""
    T, M = values.shape[1:3]
    Q, L = sequences.shape[1], sequences.shape[2]
    plane, half = planes[thread], L + LANES
    w = np.zeros(L + 2 * len(W) + LANES, planes.dtype)  # position i is at index len(W) + i
    sampled, g = np.empty(2 * len(K), planes.dtype), np.empty(len(K) * len(W), planes.dtype)
    first, total = np.empty(len(K), np.int64), np.empty(len(K), planes.dtype)
    # One query is prepared while the rows of the previous one are on their way to the cache: the
    # first half of these buffers belongs to even queries, the second to odd ones.
    rows, runs = np.empty(2 * half, np.int64), np.empty((2, len(K), 2), np.int64)
    weights, factors = np.empty(2 * half, planes.dtype), np.empty(2 * half, planes.dtype)
    close, ends = np.empty(2 * half, planes.dtype), np.zeros(2, np.int64)
    fine = True
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        copy_in(values, t, m, plane, D)
        for step in range(Q + 1):
            if step < Q:
                odd, head = step % 2, ((step + AHEAD) * T + t) * M + m
                prefetch_query(query, sequences, step + AHEAD, t, m, K)
                prefetch_at(closeness, (t * Q + step + AHEAD) * L)
                prefetch_at(probe, head * (len(D) + 1))
                prefetch_at(out, head * len(D))
                ends[odd], _, _, right = _find(
                    sequences, query, skip, step, t, m, bilinear, gamma, epsilon, normalize,
                    D, W, K, plane, w, sampled, g, first, total, closeness, runs[odd],
                    rows, weights, close, odd * half,
                )  # fmt: skip
                fine = fine and right
            if step > 0:
                q, odd = step - 1, (step - 1) % 2
                begin, end = odd * half, ends[odd]
                head = (q * T + t) * M + m
                start, at = head * len(D), head * (len(D) + 1)
                gather_dots(plane, rows, begin, end, probe, at, factors, None, 0, None, D)
                score(factors, close, weights, begin, end, probe[q, t, m, len(D)])
                gather_sum(plane, rows, weights, begin, end, out, start, D)
    return fine


@njit(cache=True, fastmath=FAST, error_model="numpy", nogil=True)
def backward(
    thread: int, threads: int,
    values: Any, sequences: Any, closeness: Any, query: Any, probe: Any, skip: int,
    bilinear: bool, gamma: Any, epsilon: Any, normalize: bool, D: Any, W: Any, K: Any,
    planes: Any, sums: Any, grad: Any, grad_values: Any, grad_query: Any, grad_probe: Any,
) -> bool:  # fmt: skip
    """Runs the tasks of one thread; ``grad`` is flat. The gradients of values are added up in
    ``sums``, which may be in double precision. Returns False if a node index is invalid."""
    real = planes.dtype.type
    T, M = values.shape[1:3]
    Q, L = sequences.shape[1], sequences.shape[2]
    plane, grad_plane, half = planes[thread], sums[thread], L + LANES
    # As in the forward pass; ``s`` holds the gradient of each position's weight before the scores.
    w, s = np.zeros((2, L + 2 * len(W) + LANES), planes.dtype)
    sampled2 = np.empty((2, 2 * len(K)), planes.dtype)
    g2 = np.empty((2, len(K) * len(W)), planes.dtype)
    first2, total2 = np.empty((2, len(K)), np.int64), np.empty((2, len(K)), planes.dtype)
    rows, runs = np.empty(2 * half, np.int64), np.empty((2, len(K), 2), np.int64)
    weights, factors = np.empty(2 * half, planes.dtype), np.empty(2 * half, planes.dtype)
    close, dots = np.empty(2 * half, planes.dtype), np.empty(2 * half, planes.dtype)
    slopes = np.empty(2 * half, planes.dtype)
    ends, lengths, counts = np.zeros((3, 2), np.int64)
    grad_a = np.empty(len(K), planes.dtype)
    fine = True
    for task in range(thread, T * M, threads):
        t, m = task // M, task % M
        copy_in(values, t, m, plane, D)
        grad_plane[:] = 0
        for step in range(Q + 1):
            if step < Q:
                odd, head = step % 2, ((step + AHEAD) * T + t) * M + m
                prefetch_query(query, sequences, step + AHEAD, t, m, K)
                prefetch_at(closeness, (t * Q + step + AHEAD) * L)
                prefetch_at(probe, head * (len(D) + 1))
                prefetch_at(grad, head * len(D))
                prefetch_at(grad_probe, head * (len(D) + 1))
                ends[odd], lengths[odd], counts[odd], right = _find(
                    sequences, query, skip, step, t, m, bilinear, gamma, epsilon, normalize,
                    D, W, K, plane, w, sampled2[odd], g2[odd], first2[odd], total2[odd],
                    closeness, runs[odd], rows, weights, close, odd * half,
                )  # fmt: skip
                fine = fine and right
                for i in range(odd * half, ends[odd]):
                    prefetch(grad_plane, rows[i], D)
            if step > 0:
                q, odd = step - 1, (step - 1) % 2
                begin, end, n = odd * half, ends[odd], lengths[odd]
                sampled, g, first, total = sampled2[odd], g2[odd], first2[odd], total2[odd]
                head = (q * T + t) * M + m
                start, at = head * len(D), head * (len(D) + 1)
                gather_dots(plane, rows, begin, end, probe, at, factors, grad, start, dots, D)
                score(factors, close, weights, begin, end, probe[q, t, m, len(D)])
                grad_probe[q, t, m, len(D)] = score_gradients(
                    dots, weights, factors, close, slopes, begin, end
                )
                sum_scatter(
                    plane, rows, weights, dots, begin, end, grad, start, probe, at, grad_probe,
                    grad_plane, D,
                )  # fmt: skip
                for r in range(counts[odd]):
                    copy_back(slopes, begin, s, len(W), runs[odd, r, 0], runs[odd, r, 1])
                    begin += runs[odd, r, 1] - runs[odd, r, 0]
                key_gradients(
                    sampled, n, bilinear, gamma, normalize, W, K, g, first, total, s, grad_a,
                    grad_query, q, t, m,
                )  # fmt: skip
                for k in range(len(K)):
                    fill(s, len(W) + first[k], real(0), W)
        copy_out(grad_plane, grad_values, t, m, D)
    return fine
