"""Dropout by a hash of each value's index, in plain PyTorch.

The hash has 32 bits. As PyTorch does not fully support unsigned integers, they are stored as int64,
and products are computed in two parts that cannot overflow.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from dgt.ops.half import statistics_type
from dgt.ops.linear import weight_gradient

GROUP = 8192
"""Number of consecutive values that share a key; the unit of work of a thread."""
ROWS = 8192
"""Rows of the input of a linear layer that are dropped at a time."""
BITS = 2**32 - 1


def dropout(
    x: Tensor, seed: Tensor, p: float, relu: bool, plus: Tensor | None, start: int
) -> Tensor:
    keep = kept(x.numel(), int(seed.item()), p, start, x.device).view(x.shape)
    if relu:
        keep = keep & ~(x < 0)  # the negated comparison keeps NaN
    out = (x * (1 / (1 - p))).where(keep, 0)
    return out if plus is None else out + plus


def relu_dropout_backward(grad: Tensor, out: Tensor, p: float) -> Tensor:
    return (grad * (1 / (1 - p))).where(out > 0, 0)


def dropout_linear(
    x: Tensor, weight: Tensor, bias: Tensor, seed: Tensor, p: float, row: int
) -> Tensor:
    out = x.new_empty(x.size(0), weight.size(1))
    for rows, dropped in dropped_rows(dropout, x, seed, p, row):
        out[rows] = torch.addmm(bias, dropped, weight)
    return out


def dropout_linear_backward(grad: Tensor, x: Tensor, seed: Tensor, p: float, row: int) -> Tensor:
    total = x.new_zeros(x.size(1), grad.size(1), dtype=statistics_type(x))
    for rows, dropped in dropped_rows(dropout, x, seed, p, row):
        total += weight_gradient(dropped, grad[rows])
    return total.to(x.dtype)


def dropped_rows(
    drop: Callable[..., Tensor], x: Tensor, seed: Tensor, p: float, row: int
) -> Iterator[tuple[slice, Tensor]]:
    """Yields slices of the rows of ``x`` with the rows after dropout. The first row of ``x`` is row
    ``row`` of the whole tensor, in which every ``ROWS`` rows have their own seed."""
    for i in range(row // ROWS, -(-(row + x.size(0)) // ROWS)):
        rows = slice(max(0, i * ROWS - row), (i + 1) * ROWS - row)
        start = (row + rows.start - i * ROWS) * x.size(1)
        yield rows, drop(x[rows], seed + i, p, False, None, start)


def kept(count: int, seed: int, p: float, start: int, device: torch.device) -> Tensor:
    """Returns which of ``count`` values are kept; the first has the index ``start``."""
    first = start // GROUP
    groups = torch.arange(first, (start + count + GROUP - 1) // GROUP, device=device) & BITS
    keys = _mix(_mix(groups ^ (seed & BITS)) ^ (seed >> 32))
    indices = torch.arange(start, start + count, device=device)
    values = _mix((indices % GROUP) ^ keys[indices // GROUP - first])
    return values >= threshold_of(p)


def threshold_of(p: float) -> int:
    """Returns the hash from which on values are kept."""
    return min(round(p * 2**32), BITS)


def _mix(h: Tensor) -> Tensor:
    """Hashes 32 bits to 32 bits; every input bit affects every output bit."""
    h = _times(h ^ (h >> 16), 0x7FEB352D)
    h = _times(h ^ (h >> 15), 0x846CA68B)
    return h ^ (h >> 16)


def _times(h: Tensor, factor: int) -> Tensor:
    """Returns the product modulo 2^32."""
    return (h * (factor & 0xFFFF) + ((h * (factor >> 16) & 0xFFFF) << 16)) & BITS
