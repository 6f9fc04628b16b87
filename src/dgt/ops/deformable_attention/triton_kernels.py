"""The kernels of fused deformable attention for GPUs, compiled by Triton.

Axis letters as in ``reference``: N nodes, Q queries, T criteria, M heads, K keys, L length,
D channels of a head. A tile has a power of two of each: ``BLOCK`` positions, ``HEADS`` heads,
``KEYS`` keys and ``CHANNELS`` channels. Heads are processed in groups of ``HEADS``.

A program handles one query, one criterion and one group of heads. It computes the weight of every
position for every head in registers, and reads each row of values once, all heads of the group
together: the channels of a row are contiguous over the heads. A head whose weight is zero is not
read. No ``(Q, L, D)`` tensor is ever stored.

Sums are in ``REAL``, which is float64 for float64 values and float32 for all others.
"""

import triton
import triton.language as tl


@triton.jit
def _length(sequence: tl.tensor, L: tl.constexpr, SCAN: tl.constexpr) -> tl.tensor:
    """Returns the number of nodes before the padding, reading ``SCAN`` entries at a time."""
    n = 0
    for start in range(0, L, SCAN):
        i = start + tl.arange(0, SCAN)
        node = tl.load(sequence + i, mask=i < L, other=-1)
        n += tl.sum((node >= 0).to(tl.int32), axis=0)
    return n


@triton.jit
def _sample(
    query: tl.tensor, at: tl.tensor, inside: tl.tensor,
    T: tl.constexpr, M: tl.constexpr, K: tl.constexpr, KEYS: tl.constexpr, REAL: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Returns the offsets and the attention of the keys. Shapes: ``(HEADS, KEYS)``."""
    x = tl.load(query + at, mask=inside, other=0).to(REAL)
    y = tl.load(query + at + T * M * K, mask=inside, other=0).to(REAL)
    # The exponential of a negative number cannot overflow.
    e = tl.exp(-tl.abs(x))
    offsets = tl.where(x < 0, e, 1) / (1 + e)
    y = tl.where((tl.arange(0, KEYS) < K)[None, :], y, float("-inf"))
    e = tl.exp(y - tl.max(y, axis=1)[:, None])
    return offsets, e / tl.sum(e, axis=1)[:, None]


@triton.jit
def _weights(
    distance: tl.tensor, BILINEAR: tl.constexpr, GAMMA: tl.constexpr, EPSILON: tl.constexpr
) -> tl.tensor:
    """Returns the kernel at the signed distances ``p - i``. NaN has no distance from any position,
    and propagates to all weights."""
    if BILINEAR:
        return tl.where(tl.abs(distance) >= 1, 0, 1 - tl.abs(distance))
    g = tl.exp(distance * distance * (-1 / GAMMA))
    return tl.where(tl.abs(distance) >= EPSILON, 0, g)


@triton.jit
def _totals(
    p: tl.tensor, n: tl.tensor, BILINEAR: tl.constexpr, GAMMA: tl.constexpr, EPSILON: tl.constexpr,
    NORMALIZE: tl.constexpr, REACH: tl.constexpr, WINDOW: tl.constexpr, SCAN_WINDOW: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Returns the sum of the weights of each key, over the positions of its window, or ones."""
    total = tl.zeros_like(p)
    if NORMALIZE:
        first = tl.maximum(tl.floor(p) - (REACH - 1), 0)
        for start in range(0, WINDOW, SCAN_WINDOW):
            i = first[:, :, None] + (start + tl.arange(0, SCAN_WINDOW))[None, None, :]
            g = _weights(p[:, :, None] - i, BILINEAR, GAMMA, EPSILON)
            total += tl.sum(tl.where(i < n, g, 0), axis=2)
    return tl.where(total == 0, 1, total)


@triton.jit
def _slopes(
    distance: tl.tensor, g: tl.tensor, BILINEAR: tl.constexpr, GAMMA: tl.constexpr
) -> tl.tensor:
    """Returns the derivatives of the weights ``g`` with respect to ``p``."""
    if BILINEAR:
        slope = tl.where(distance > 0, -1.0, tl.where(distance < 0, 1.0, 0.0))
        return tl.where(g > 0, slope, 0.0).to(g.dtype)
    return g * distance * (-2 / GAMMA)


@triton.jit
def forward(
    values: tl.tensor, sequences: tl.tensor, query: tl.tensor, out: tl.tensor,
    N: tl.tensor, stride: tl.tensor,
    T: tl.constexpr, M: tl.constexpr, D: tl.constexpr, K: tl.constexpr, L: tl.constexpr,
    BILINEAR: tl.constexpr, GAMMA: tl.constexpr, EPSILON: tl.constexpr, NORMALIZE: tl.constexpr,
    REACH: tl.constexpr, WINDOW: tl.constexpr, SCAN_WINDOW: tl.constexpr, SCAN: tl.constexpr,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, KEYS: tl.constexpr, REAL: tl.constexpr,
    BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Computes the output of one query, criterion and group of heads. ``stride`` is that of the
    criteria in ``sequences``."""
    q, t = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    heads = tl.program_id(2) * HEADS + tl.arange(0, HEADS)
    keys, channels = tl.arange(0, KEYS), tl.arange(0, CHANNELS)
    sequence = sequences + t * stride + q * L
    n = _length(sequence, L, SCAN)
    at = (q * 2 * T + t) * M * K + heads[:, None] * K + keys[None, :]
    inside = (heads[:, None] < M) & (keys[None, :] < K)
    offsets, a = _sample(query, at, inside, T, M, K, KEYS, REAL)
    p = offsets * (n - 1)
    a /= _totals(p, n, BILINEAR, GAMMA, EPSILON, NORMALIZE, REACH, WINDOW, SCAN_WINDOW)

    place = (t * M + heads)[:, None] * D + channels[None, :]  # (HEADS, CHANNELS)
    exists = (heads[:, None] < M) & (channels[None, :] < D)
    total = tl.zeros((BLOCK, HEADS, CHANNELS), REAL)
    for start in range(0, L, BLOCK):
        i = start + tl.arange(0, BLOCK)
        node = tl.load(sequence + i, mask=i < L, other=-1)
        g = _weights(p[None, :, :] - i[:, None, None], BILINEAR, GAMMA, EPSILON)
        w = tl.sum(a[None, :, :] * g, axis=2)  # (BLOCK, HEADS)
        w = tl.where(((node >= 0) & (node < N))[:, None], w, 0)
        rows = node.to(tl.int64)[:, None, None] * (T * M * D) + place[None, :, :]
        read = exists[None, :, :] & (w != 0)[:, :, None]
        v = tl.load(values + rows, mask=read, other=0).to(REAL)
        total += w[:, :, None] * v
    result = tl.sum(total, axis=0)
    tl.store(out + q * (T * M * D) + place, result.to(out.dtype.element_ty), mask=exists)


@triton.jit(do_not_specialize=["first"])
def backward(
    grad: tl.tensor, values: tl.tensor, sequences: tl.tensor, query: tl.tensor,
    grad_values: tl.tensor, grad_query: tl.tensor, weights: tl.tensor,
    N: tl.tensor, stride: tl.tensor, first: tl.tensor,
    T: tl.constexpr, M: tl.constexpr, D: tl.constexpr, K: tl.constexpr, L: tl.constexpr,
    BILINEAR: tl.constexpr, GAMMA: tl.constexpr, EPSILON: tl.constexpr, NORMALIZE: tl.constexpr,
    REACH: tl.constexpr, WINDOW: tl.constexpr, SCAN_WINDOW: tl.constexpr, SCAN: tl.constexpr,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, KEYS: tl.constexpr, REAL: tl.constexpr,
    ATOMIC: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Computes the gradient of one query, criterion and group of heads. ``first`` is the first
    criterion of a launch.

    The gradient of the values is added to ``grad_values`` atomically or, if not ``ATOMIC``, left to
    ``triton_gather``, for which the weight of every position is written to ``weights``, of shape
    ``(Q, L, M)``. A launch is then for one criterion.
    """
    q, t = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64) + first
    heads = tl.program_id(2) * HEADS + tl.arange(0, HEADS)
    keys, channels = tl.arange(0, KEYS), tl.arange(0, CHANNELS)
    sequence = sequences + t * stride + q * L
    n = _length(sequence, L, SCAN)
    at = (q * 2 * T + t) * M * K + heads[:, None] * K + keys[None, :]
    inside = (heads[:, None] < M) & (keys[None, :] < K)
    offsets, a = _sample(query, at, inside, T, M, K, KEYS, REAL)
    p = offsets * (n - 1)
    total = _totals(p, n, BILINEAR, GAMMA, EPSILON, NORMALIZE, REACH, WINDOW, SCAN_WINDOW)
    scale = a / total

    place = (t * M + heads)[:, None] * D + channels[None, :]  # (HEADS, CHANNELS)
    exists = (heads[:, None] < M) & (channels[None, :] < D)
    upstream = tl.load(grad + q * (T * M * D) + place, mask=exists, other=0).to(REAL)
    # Sums over the positions of g·s, g'·s and g', where g' = dg/dp, and s is the product of a row
    # of values with the upstream gradient.
    gs = tl.zeros((BLOCK, HEADS, KEYS), REAL)
    ds = tl.zeros((BLOCK, HEADS, KEYS), REAL)
    dg = tl.zeros((BLOCK, HEADS, KEYS), REAL)
    for start in range(0, L, BLOCK):
        i = start + tl.arange(0, BLOCK)
        node = tl.load(sequence + i, mask=i < L, other=-1)
        distance = p[None, :, :] - i[:, None, None]
        g = _weights(distance, BILINEAR, GAMMA, EPSILON)
        g = tl.where(((node >= 0) & (node < N))[:, None, None], g, 0)
        w = tl.sum(scale[None, :, :] * g, axis=2)  # (BLOCK, HEADS)
        rows = node.to(tl.int64)[:, None, None] * (T * M * D) + place[None, :, :]
        read = exists[None, :, :] & (w != 0)[:, :, None]
        v = tl.load(values + rows, mask=read, other=0).to(REAL)
        if ATOMIC:
            change = w[:, :, None] * upstream[None, :, :]
            tl.atomic_add(grad_values + rows, change, mask=read, sem="relaxed")
        else:
            slots = weights + (q * L + i)[:, None] * M + heads[None, :]
            tl.store(slots, w, mask=(i < L)[:, None] & (heads < M)[None, :])
        s = tl.sum(v * upstream[None, :, :], axis=2)  # (BLOCK, HEADS)
        slope = _slopes(distance, g, BILINEAR, GAMMA)
        gs += g * s[:, :, None]
        ds += slope * s[:, :, None]
        if NORMALIZE:
            dg += slope
    grad_a = tl.sum(gs, axis=0) / total
    grad_p = tl.sum(ds, axis=0)
    if NORMALIZE:
        grad_p = (grad_p - grad_a * tl.sum(dg, axis=0)) / total
    x = a * grad_p * (n - 1) * offsets * (1 - offsets)
    y = a * (grad_a - tl.sum(a * grad_a, axis=1)[:, None])
    tl.store(grad_query + at, x.to(grad_query.dtype.element_ty), mask=inside)
    tl.store(grad_query + at + T * M * K, y.to(grad_query.dtype.element_ty), mask=inside)
