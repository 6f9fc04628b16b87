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
from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

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
        return part(*inputs)

    def attend(self, attention: "DeformableGraphAttention", z: Tensor, level: "Level") -> Tensor:
        values = attention.project(z, labels=level.labels)
        return attention.read(values, level, level.rows(z))


class Exchange(Protocol):
    """How ranks, each of which owns a range of the nodes, exchange their values."""

    def gather(self, own: Tensor) -> Tensor:
        """Returns the rows of all nodes, given the rows of the nodes that each rank owns."""

    def sum_own(self, rows: Tensor) -> Tensor:
        """Returns the rows of the nodes that this rank owns, summed over all ranks."""


class Chunks(AllAtOnce):
    """Processes nodes in chunks. Only :math:`z` is kept between blocks, and attention holds the
    values of one criterion at a time.

    Args:
        size: Nodes per chunk.
        exchange: Provides the values of nodes that other ranks own, if there are several ranks.
        first: Index of the first node that this rank owns.
        before: Number of the ``nodes`` passed to the model that precede those of this rank.
    """

    def __init__(
        self, size: int, exchange: Exchange | None = None, *, first: int = 0, before: int = 0
    ) -> None:
        self.size = size
        self.exchange = exchange
        self.first = first
        self.before = before

    def each(
        self, part: Part, *inputs: Tensor | Rows | None, nodes: Tensor | None = None
    ) -> Tensor:
        row = self.first if nodes is None else self.before
        random = torch.get_rng_state()
        outs = []
        for i, rows in enumerate(zip(*(_split(x, self.size) for x in inputs), strict=False)):
            # A dropout mask depends on the row and on a random seed, which all chunks must share.
            torch.set_rng_state(random)
            first = row + i * self.size
            outs.append(checkpoint(_from_row, first, part, *rows, use_reentrant=False))
        return outs[0] if len(outs) == 1 else torch.cat(outs)

    def attend(self, attention: "DeformableGraphAttention", z: Tensor, level: "Level") -> Tensor:
        queries = level.rows(z)
        random = torch.get_rng_state()
        outs = []
        for t in range(attention.criteria):
            torch.set_rng_state(random)  # dropout is the same for all criteria
            fixed = attention, slice(t, t + 1), level
            outs.append(checkpoint(self._one_criterion, *fixed, z, queries, use_reentrant=False))
        return reduce(torch.add, outs)

    def _one_criterion(
        self,
        attention: "DeformableGraphAttention",
        criterion: slice,
        level: "Level",
        z: Tensor,
        queries: Tensor,
    ) -> Tensor:
        values = _from_row(self.first, attention.project, z, criterion, level.labels)
        if self.exchange is not None:
            own = values.flatten(1)
            values = _Exchanged.apply(own, self.exchange).unflatten(1, values.shape[1:])
        return attention.read(values, level.of(criterion, z.device), queries, criterion)


class _Exchanged(torch.autograd.Function):
    """Gathers the rows of all nodes from the ranks that own them."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, exchange: Exchange) -> Tensor:
        ctx.exchange = exchange
        return exchange.gather(own)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        return ctx.exchange.sum_own(grads[0]), None


ALL_AT_ONCE = AllAtOnce()
_current: ContextVar[AllAtOnce] = ContextVar("rows", default=ALL_AT_ONCE)


def _way() -> AllAtOnce:
    # torch.compile cannot trace a context variable; compiled models process all nodes at once.
    return ALL_AT_ONCE if torch.compiler.is_compiling() else _current.get()


def _from_row(row: int, part: Part, *arguments: Any) -> Tensor:
    with rows_from(row):
        return part(*arguments)


def _split(x: Tensor | Rows | None, size: int) -> Iterable[Tensor | Rows | None]:
    if x is None:
        return repeat(None)
    if isinstance(x, Rows):
        count = max(1, len(x.matrix))
        return (take_rows(x, i, min(i + size, count)) for i in range(0, count, size))
    # One autograd node for all chunks: separate slices would each allocate a full-size gradient.
    return x.split(size)
