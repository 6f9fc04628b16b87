"""Deformable attention fused for the CPU, with numba.

Axis letters as in :mod:`dgt.nn.interpolation`: N nodes, Q queries, T criteria, M heads, K keys,
L length, W window, D channels of a head.

A task is one (criterion, head). It copies that head's values into a plane ``(N, D)``, small enough
to stay in the cache where the whole of the values would not, and goes through the queries in order.
No ``(Q, L, D)`` tensor ever exists: the weights of a query's windows are built on the fly, in the
backward pass once more. As a task alone writes its plane of the value gradients, and sums in the
order of the queries, the result does not depend on the number of threads.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit, prange

from dgt.nn.kernels.simd import row_loops

# Sums may be reordered for the vector units; nothing assumes the absence of NaN or infinity.
FAST = {"reassoc", "contract", "arcp", "nsz"}


class Kernels(NamedTuple):
    forward: Any
    backward: Any


@cache
def kernels(D: int, W: int, bilinear: bool, real: Any) -> Kernels:
    """The compiled passes for heads of ``D`` channels of type ``real`` and windows of ``W``.

    The arguments are constants of the compiled code, so that the loops over channels and windows
    become a few vector instructions. Both passes take ``planes``, room for one or two planes for
    each thread, and ``table``: exp(-s²/gamma) for the steps s = 1 - W/2 … W/2 of a window.
    """
    reach = W // 2
    gather_sum, dot_scatter = row_loops(D)

    @njit(cache=True, inline="always")
    def length(sequences: Any, t: int, q: int) -> int:
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

    @njit(cache=True, fastmath=FAST, inline="always")
    def window(p: Any, n: int, gamma: Any, epsilon: Any, table: Any, g: Any, k: int) -> int:
        """Writes the weights of the W positions around ``p`` into ``g[k]``; returns the first.

        With c = floor(p) and f = p - c, the weight of position c + s is
        exp(-(f - s)²/gamma) = exp(-f²/gamma) · exp(2f/gamma)^s · exp(-s²/gamma):
        two calls of exp for a whole window. Positions outside of the sequence weigh nothing.
        """
        # A p that is not a number must not name a position: it becomes the weights' NaN.
        c = int(min(p, real(n - 1))) if p >= 0 else 0
        f = p - real(c)
        first = c - reach + 1
        if bilinear:
            g[k, 0] = real(1) - f
            g[k, 1] = f
        else:
            up = math.exp((f + f) / gamma)
            down = real(1) / up
            power = math.exp(-f * f / gamma)
            for s in range(reach):
                g[k, reach - 1 - s] = power * table[reach - 1 - s]
                power = power * down if table[reach - 1 - s] > 0 else real(0)
            power = math.exp(-f * f / gamma)
            for s in range(reach):
                power = power * up if table[reach + s] > 0 else real(0)
                g[k, reach + s] = power * table[reach + s]
        for j in range(W):
            i = first + j
            if i < 0 or i >= n or abs(p - real(i)) >= epsilon:
                g[k, j] = real(0)
        return first

    @njit(cache=True, fastmath=FAST, inline="always")
    def total_weight(g: Any, k: int) -> Any:
        total = real(0)
        for j in range(W):
            total += g[k, j]
        return total if total != 0 else real(1)

    @njit(cache=True, fastmath=FAST, inline="always")
    def read_plane(values: Any, t: int, m: int, plane: Any) -> None:
        for j in range(values.shape[0]):
            for c in range(D):
                plane[j, c] = values[j, t, m, c]

    @njit(parallel=True, cache=True, fastmath=FAST, nogil=True)
    def forward(
        values: Any, sequences: Any, offsets: Any, attention: Any, gamma: Any, epsilon: Any,
        normalize: bool, table: Any, planes: Any, out: Any,
    ) -> bool:  # fmt: skip
        N, T, M, _ = values.shape
        Q, L, K = sequences.shape[1], sequences.shape[2], offsets.shape[3]
        threads = planes.shape[0]
        bad = np.zeros(threads, np.bool_)
        for thread in prange(threads):
            plane = planes[thread, 0]
            g = np.empty((K, W), real)
            w = np.zeros(L + 2 * W, real)  # position i stands at W + i
            rows, weights = np.empty(L, np.int64), np.empty(L, real)
            for task in range(thread, T * M, threads):
                t, m = task // M, task % M
                read_plane(values, t, m, plane)
                for q in range(Q):
                    n = length(sequences, t, q)
                    low, high = n, 0
                    for k in range(K):
                        p = offsets[q, t, m, k] * real(n - 1)
                        first = window(p, n, gamma, epsilon, table, g, k)
                        a = attention[q, t, m, k]
                        if normalize:
                            a /= total_weight(g, k)
                        for j in range(W):
                            w[W + first + j] += a * g[k, j]
                        low, high = min(low, first), max(high, first + W)
                    size = 0
                    for i in range(max(low, 0), min(high, n)):
                        r = sequences[t, q, i]
                        if r < 0 or r >= N:
                            bad[thread] = True
                        elif w[W + i] != 0:
                            rows[size], weights[size] = r, w[W + i]
                            size += 1
                    for i in range(low, high):
                        w[W + i] = real(0)
                    gather_sum(plane, rows, weights, size, out, ((q * T + t) * M + m) * D)
        return not bad.any()

    @njit(parallel=True, cache=True, fastmath=FAST, nogil=True)
    def backward(
        values: Any, sequences: Any, offsets: Any, attention: Any, gamma: Any, epsilon: Any,
        normalize: bool, table: Any, planes: Any, grad: Any,
        grad_values: Any, grad_offsets: Any, grad_attention: Any,
    ) -> None:  # fmt: skip
        N, T, M, _ = values.shape
        Q, L, K = sequences.shape[1], sequences.shape[2], offsets.shape[3]
        threads = planes.shape[0]
        for thread in prange(threads):
            plane, grad_plane = planes[thread, 0], planes[thread, 1]
            g = np.empty((K, W), real)
            first, total = np.empty(K, np.int64), np.empty(K, real)
            w = np.zeros(L + 2 * W, real)  # position i stands at W + i
            s = np.zeros(L + 2 * W, real)  # each value's product with the upstream gradient
            read = np.zeros(L + 2 * W, np.bool_)
            rows, weights = np.empty(L, np.int64), np.empty(L, real)
            positions, dots = np.empty(L, np.int64), np.empty(L, real)
            for task in range(thread, T * M, threads):
                t, m = task // M, task % M
                read_plane(values, t, m, plane)
                grad_plane[:] = real(0)
                for q in range(Q):
                    n = length(sequences, t, q)
                    low, high = n, 0
                    for k in range(K):
                        p = offsets[q, t, m, k] * real(n - 1)
                        first[k] = window(p, n, gamma, epsilon, table, g, k)
                        total[k] = total_weight(g, k) if normalize else real(1)
                        a = attention[q, t, m, k] / total[k]
                        for j in range(W):
                            w[W + first[k] + j] += a * g[k, j]
                            read[W + first[k] + j] = True
                        low, high = min(low, first[k]), max(high, first[k] + W)
                    size = 0
                    for i in range(max(low, 0), min(high, n)):
                        if read[W + i]:
                            rows[size], weights[size] = sequences[t, q, i], w[W + i]
                            positions[size] = i
                            size += 1
                    dot_scatter(
                        plane, rows, weights, size,
                        grad, ((q * T + t) * M + m) * D, dots, grad_plane,
                    )  # fmt: skip
                    for i in range(size):
                        s[W + positions[i]] = dots[i]
                    for i in range(low, high):
                        w[W + i] = real(0)
                        read[W + i] = False
                    for k in range(K):
                        p = offsets[q, t, m, k] * real(n - 1)
                        # Sums over the window of g·s, g'·s and g', with g' the derivative for p.
                        gs, ds, dg = real(0), real(0), real(0)
                        for j in range(W):
                            distance = p - real(first[k] + j)
                            if bilinear:
                                slope = real(0)
                                if g[k, j] > 0 and distance != 0:
                                    slope = real(-1) if distance > 0 else real(1)
                            else:
                                slope = g[k, j] * real(-2) * distance / gamma
                            gs += g[k, j] * s[W + first[k] + j]
                            ds += slope * s[W + first[k] + j]
                            dg += slope
                        gs /= total[k]
                        if normalize:
                            ds = (ds - gs * dg) / total[k]
                        grad_attention[q, t, m, k] = gs
                        grad_offsets[q, t, m, k] = attention[q, t, m, k] * ds * real(n - 1)
                for r in range(N):
                    for c in range(D):
                        grad_values[r, t, m, c] = grad_plane[r, c]

    return Kernels(forward, backward)
