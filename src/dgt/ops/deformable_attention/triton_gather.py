"""The gradient of the values as a sum over the queries that read each node: the same bits in every
run, as the order of the sum is fixed.

Letters and tiles as in ``triton_kernels``, whose backward pass has written the ``weights`` of one
criterion, of shape ``(Q, L, M)``. The entries of a node, which are places in a sequence
that hold it, come from the transposed index in ``transpose``. A program sums at most ``SEGMENT``
entries, so that a node that many queries read does not delay the others. A first launch computes
the ``parts``, which are all segments of a node but its first. A second launch sums the first
segment of every node, and adds the node's parts in order.
"""

import triton
import triton.language as tl


@triton.jit
def _sum(
    grad: tl.tensor, weights: tl.tensor, order: tl.tensor, begin: tl.tensor, end: tl.tensor,
    heads: tl.tensor, place: tl.tensor, exists: tl.tensor,
    T: tl.constexpr, M: tl.constexpr, D: tl.constexpr, L: tl.constexpr,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, REAL: tl.constexpr, BLOCK: tl.constexpr,
) -> tl.tensor:  # fmt: skip
    """Returns the sum over the entries ``begin`` to ``end - 1``. Shape: ``(HEADS, CHANNELS)``."""
    total = tl.zeros((BLOCK, HEADS, CHANNELS), REAL)
    for start in range(begin, end, BLOCK):
        e = start + tl.arange(0, BLOCK)
        entry = tl.load(order + e, mask=e < end, other=0).to(tl.int64)
        slots = weights + entry[:, None] * M + heads[None, :]
        w = tl.load(slots, mask=(e < end)[:, None] & (heads < M)[None, :], other=0)
        rows = grad + (entry // L)[:, None, None] * (T * M * D) + place[None, :, :]
        read = exists[None, :, :] & (w != 0)[:, :, None]
        u = tl.load(rows, mask=read, other=0).to(REAL)
        total += w[:, :, None] * u
    return tl.sum(total, axis=0)


@triton.jit(do_not_specialize=["first"])
def gather(
    grad: tl.tensor, weights: tl.tensor, order: tl.tensor, begins: tl.tensor, ends: tl.tensor,
    part_rows: tl.tensor, part_begins: tl.tensor, part_pointers: tl.tensor, parts: tl.tensor,
    grad_values: tl.tensor, N: tl.tensor, first: tl.tensor,
    T: tl.constexpr, M: tl.constexpr, D: tl.constexpr, L: tl.constexpr,
    HEADS: tl.constexpr, CHANNELS: tl.constexpr, REAL: tl.constexpr,
    SEGMENT: tl.constexpr, PARTS: tl.constexpr, BLOCK: tl.constexpr,
) -> None:  # fmt: skip
    """Computes one of the ``parts`` if ``PARTS``, else the gradient of one row ``t * N + node``.
    ``first`` is the first part or row of the criterion."""
    piece = tl.program_id(0).to(tl.int64) + first
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)
    channels = tl.arange(0, CHANNELS)
    if PARTS:
        row = tl.load(part_rows + piece).to(tl.int64)
        begin = tl.load(part_begins + piece).to(tl.int64)
    else:
        row = piece
        begin = tl.load(begins + piece).to(tl.int64)
    end = tl.minimum(tl.load(ends + row).to(tl.int64), begin + SEGMENT)
    node, t = row % N, row // N
    channel = heads[:, None] * D + channels[None, :]  # (HEADS, CHANNELS)
    exists = (heads[:, None] < M) & (channels[None, :] < D)
    total = _sum(
        grad, weights, order, begin, end, heads, t * (M * D) + channel, exists,
        T, M, D, L, HEADS, CHANNELS, REAL, BLOCK,
    )  # fmt: skip
    if PARTS:
        tl.store(parts + piece * (M * D) + channel, total, mask=exists)
    else:
        begin_parts = tl.load(part_pointers + row).to(tl.int64)
        end_parts = tl.load(part_pointers + row + 1).to(tl.int64)
        for part in range(begin_parts, end_parts):
            total += tl.load(parts + part * (M * D) + channel, mask=exists, other=0)
        result = total.to(grad_values.dtype.element_ty)
        tl.store(grad_values + (node * T + t) * (M * D) + channel, result, mask=exists)
