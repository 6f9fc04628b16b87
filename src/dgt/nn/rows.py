r"""How a model processes its nodes: all at once or, in less memory, in chunks.

A forward pass alternates between parts that treat every node by itself (embedding, MLP, head) and
attention, in which nodes read one another. A model hands the former to :func:`each` and the latter
to :func:`attend`. By default, these process all nodes at once. Inside ``with using(Chunks(...))``,
they process the nodes in chunks and recompute intermediate results in the backward pass. The model
is the same either way, and so are its results, up to the order of summation.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import reduce
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from dgt.ops import sums
from dgt.ops.deformable_attention import Exchange
from dgt.ops.dropout import rows_from
from dgt.ops.sparse import Rows, take_rows

if TYPE_CHECKING:
    from dgt.nn.attention import DeformableGraphAttention
    from dgt.nn.level import Level

Part = Callable[..., Tensor]


def each(part: Part, *inputs: Tensor | Rows | None, nodes: Tensor | None = None) -> Tensor:
    """Computes ``part(*inputs)`` for a part that treats every row by itself.

    Args:
        part: The function.
        *inputs: Its arguments, with one row per node.
        nodes: The nodes that the rows belong to (default: all).
    """
    return _way().each(part, *inputs, nodes=nodes)


def attend(attention: "DeformableGraphAttention", z: Tensor, level: "Level") -> Tensor:
    """Computes the attention; arguments as for :meth:`DeformableGraphAttention.attend`."""
    return _way().attend(attention, z, level)


@contextmanager
def using(way: "AllAtOnce") -> Iterator[None]:
    """Makes the models called inside the context process their nodes in this way."""
    token = _current.set(way)
    try:
        yield
    finally:
        _current.reset(token)


class AllAtOnce:
    """Processes all nodes at once."""

    def each(
        self, part: Part, *inputs: Tensor | Rows | None, nodes: Tensor | None = None
    ) -> Tensor:
        with sums.rows_of(nodes):
            return part(*inputs)

    def attend(self, attention: "DeformableGraphAttention", z: Tensor, level: "Level") -> Tensor:
        values = attention.project(z, labels=level.labels)
        with sums.rows_of(level.nodes):
            return attention.read(values, level, level.rows(z))


class Chunks(AllAtOnce):
    """Processes nodes in chunks. Only :math:`z` is kept between blocks, and attention holds the
    values of one criterion at a time.

    Args:
        size: Nodes per chunk.
    """

    first = 0
    """Index of the first node in the whole graph."""
    before = 0
    """Index of the first of the ``nodes`` passed to the model among those of the whole graph."""

    def __init__(self, size: int) -> None:
        self.size = size

    def each(
        self, part: Part, *inputs: Tensor | Rows | None, nodes: Tensor | None = None
    ) -> Tensor:
        row = self.first if nodes is None else self.before
        count = next(_count(x) for x in inputs if x is not None)
        ends = chunk_ends(count, self.size, sums.bounds_of(nodes))
        random = torch.get_rng_state()
        outs, start = [], 0
        for *rows, end in zip(*(_split(x, ends) for x in inputs), ends, strict=False):
            # A dropout mask depends on the row and on a random seed, which all chunks must share.
            torch.set_rng_state(random)
            some = None if nodes is None else nodes[start:end]
            outs.append(checkpoint(_of_rows, row + start, some, part, *rows, use_reentrant=False))
            start = end
        return outs[0] if len(outs) == 1 else torch.cat(outs)

    def attend(self, attention: "DeformableGraphAttention", z: Tensor, level: "Level") -> Tensor:
        queries = level.rows(z)
        random = torch.get_rng_state()
        outs = []
        for t in range(attention.criteria):
            torch.set_rng_state(random)  # dropout is the same for all criteria
            fixed = attention, slice(t, t + 1), level
            outs.append(checkpoint(_one_criterion, *fixed, z, queries, use_reentrant=False))
        return reduce(torch.add, outs)


class Shared(Chunks):
    """Processes the nodes that one of several ranks owns. Attention holds the values that other
    ranks own of one criterion at a time.

    Every row is computed by the same operations as by :class:`AllAtOnce`, in the same order, so
    that it has the same bits.

    Args:
        size: Nodes per chunk.
        exchange: Provides the values of nodes that other ranks own.
        first: Index of the first node that this rank owns.
        before: Number of the ``nodes`` passed to the model that precede those of this rank.
    """

    def __init__(self, size: int, exchange: Exchange, *, first: int, before: int) -> None:
        super().__init__(size)
        self.exchange = exchange
        self.first = first
        self.before = before

    def attend(self, attention: "DeformableGraphAttention", z: Tensor, level: "Level") -> Tensor:
        with rows_from(self.first):
            values = attention.project(z, labels=level.labels).split(1, dim=1)
        with sums.rows_of(level.nodes):
            # The axis of the criteria is the third from the end.
            asked = [x.split(1, dim=-3) for x in attention.asked(level.rows(z))]
            reads = [
                attention.look(
                    values[t],
                    level.of(slice(t, t + 1), z.device),
                    [x[t] for x in asked],
                    self.exchange,
                )
                for t in range(attention.criteria)
            ]
            return attention.mix(torch.cat(reads, dim=1))


ALL_AT_ONCE = AllAtOnce()
_current: ContextVar[AllAtOnce] = ContextVar("rows", default=ALL_AT_ONCE)


def _way() -> AllAtOnce:
    # torch.compile cannot trace a context variable; compiled models process all nodes at once.
    return ALL_AT_ONCE if torch.compiler.is_compiling() else _current.get()


def chunk_ends(count: int, size: int, bounds: sums.Bounds | None) -> list[int]:
    """Returns the end of each chunk of at most ``size`` rows; at the bounds of blocks, if there are
    any and they are not further apart."""
    if bounds is None:
        return [*range(size, count, size), count]
    ends = [0]
    for low, high in pairwise(bounds):
        if high - ends[-1] > size and low > ends[-1]:
            ends.append(low)
        ends += range(ends[-1] + size, high, size)
    return [*ends[1:], count]


def _one_criterion(
    attention: "DeformableGraphAttention",
    criterion: slice,
    level: "Level",
    z: Tensor,
    queries: Tensor,
) -> Tensor:
    values = attention.project(z, criterion, level.labels)
    with sums.rows_of(level.nodes):
        return attention.read(values, level.of(criterion, z.device), queries, criterion)


def _of_rows(row: int, nodes: Tensor | None, part: Part, *arguments: Any) -> Tensor:
    with rows_from(row), sums.rows_of(nodes):
        return part(*arguments)


def _count(x: Tensor | Rows) -> int:
    return len(x.matrix if isinstance(x, Rows) else x)


def _split(x: Tensor | Rows | None, ends: list[int]) -> Iterable[Tensor | Rows | None]:
    if x is None:
        return repeat(None)
    sizes = [end - start for start, end in pairwise([0, *ends])]
    if isinstance(x, Rows):
        return (take_rows(x, end - size, end) for size, end in zip(sizes, ends, strict=True))
    # One autograd node for all chunks: separate slices would each allocate a full-size gradient.
    return x.split(sizes)
