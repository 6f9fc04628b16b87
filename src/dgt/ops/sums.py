"""Sums over nodes that are the same for any number of processes that share the nodes.

The gradient of a weight is a sum over all nodes. In single precision, its last bits depend on the
order of summation. Sums over more than :data:`BLOCK` nodes are therefore split into blocks of
consecutive nodes. The sum of a block is in single precision, and blocks are added up in double
precision, where their order no longer matters once the total is rounded. A rank owns whole blocks.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from itertools import pairwise

import torch
from torch import Tensor

BLOCK = 4096
"""Nodes per block. Sums over fewer nodes are not split."""

Bounds = tuple[int, ...]
"""The first row of each block, and the number of rows."""

_current: ContextVar[Bounds | None] = ContextVar("bounds", default=None)


def rows_of(nodes: Tensor | None) -> AbstractContextManager[None]:
    """Declares that the rows processed inside the context are those of some nodes (None: all)."""
    bounds = bounds_of(nodes)
    return nullcontext() if bounds is None else _split_at(bounds)


@contextmanager
def _split_at(bounds: Bounds) -> Iterator[None]:
    token = _current.set(bounds)
    try:
        yield
    finally:
        _current.reset(token)


def bounds_of(nodes: Tensor | None) -> Bounds | None:
    """Returns the bounds of the blocks of ascending nodes; None for the blocks of all nodes."""
    if torch.compiler.is_compiling() or nodes is None or not nodes.is_cpu or len(nodes) == 0:
        return None
    last = int(nodes[-1])
    if last < BLOCK or bool((nodes[1:] < nodes[:-1]).any()):
        return None
    begins = torch.arange(0, last + 1, BLOCK)
    return (*torch.searchsorted(nodes.contiguous(), begins).unique().tolist(), len(nodes))


def current() -> Bounds | None:
    """Returns the bounds of the current context."""
    # torch.compile cannot trace a context variable.
    return None if torch.compiler.is_compiling() else _current.get()


def uses_blocks(x: Tensor) -> bool:
    """Returns whether sums over the rows of ``x`` are split."""
    if torch.compiler.is_compiling() or type(x) is not Tensor:
        return False  # compiled code has one sum
    return x.is_cpu and x.dtype == torch.float32 and x.size(0) > BLOCK


def add_up(part: Callable[[slice], Tensor], x: Tensor, bounds: Bounds | None = None) -> Tensor:
    """Returns the sum of ``part(rows)`` over the blocks of the rows of ``x``, in double precision
    if there are several blocks.

    Args:
        part: Returns the sum over some rows.
        x: A tensor with these rows.
        bounds: The bounds of the blocks (default: :data:`BLOCK` rows each).
    """
    if x.dtype != torch.float32 or (bounds is None and not uses_blocks(x)):
        return part(slice(None))
    if bounds is None:
        bounds = (*range(0, x.size(0), BLOCK), x.size(0))
    blocks = (part(slice(*ends)) for ends in pairwise(bounds))
    total = next(blocks).double()
    for block in blocks:
        total += block
    return total
