"""A DGT in bounded memory: some nodes at a time, or those of one process among several.

The results are those of :meth:`dgt.nn.DGT.forward`, up to the order in which numbers are added.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from dgt.nn.attention import DeformableGraphAttention, attend
from dgt.nn.dropout import rows_from
from dgt.nn.linear import linear, weight_gradient
from dgt.nn.model import DGT, Block
from dgt.nn.sparse import Rows, take_rows


class Level(NamedTuple):
    """What one block reads when it works for some nodes alone."""

    sequences: Tensor
    """Of the nodes that attend, as rows of the block's input. Shape: ``(T, Q, L)``."""
    nodes: Tensor
    """The rows of the block's input that attend, int64 ``(Q,)``."""


def by_level(
    model: DGT, x: Tensor, levels: Sequence[Level], encoding: Tensor | None, nodes: None
) -> Tensor:
    """The logits of the last level's nodes, from the features of all that they can reach."""
    z = model.embed(x, encoding)
    for block, level in zip(model.blocks, levels, strict=True):
        z = block(z, *level)
    return model.head(z)


class Exchange(Protocol):
    """How processes that own a range of the nodes each come by one another's values."""

    def gather(self, own: Tensor) -> Tensor:
        """The rows of all nodes, from those of each process's own."""

    def sum_own(self, rows: Tensor) -> Tensor:
        """The sum over the processes of the rows of each one's own nodes."""


class Alone:
    """One process, which owns all nodes."""

    def gather(self, own: Tensor) -> Tensor:
        return own

    def sum_own(self, rows: Tensor) -> Tensor:
        return rows


class Chunks:
    """A DGT in chunks of nodes. Between blocks only :math:`z` is kept; attention works on the
    values of one criterion at a time; all else is computed again in the backward pass.

    Args:
        size: Nodes in a chunk.
        exchange: Where the values of other processes' nodes come from.
        first: The first of this process's nodes.
        before: Number of nodes before ``first`` that other processes' logits are asked of.
        queries: Nodes of a chunk that attends; by default ``size``. Each chunk makes a gradient of
            the values of all nodes, so that few large ones are faster and may take less memory.
    """

    def __init__(
        self,
        size: int,
        exchange: Exchange | None = None,
        first: int = 0,
        before: int = 0,
        queries: int | None = None,
    ) -> None:
        self.size = size
        self.queries = queries or size
        self.exchange = exchange or Alone()
        self.first = first
        self.before = before

    def __call__(
        self,
        model: DGT,
        x: Tensor | Rows,
        sequences: Tensor,
        encoding: Tensor | Rows | None,
        nodes: Tensor | None,
    ) -> Tensor:
        """The logits of ``nodes``, or all, that are this process's own; counted from ``first``."""

        def embed(start: int, stop: int) -> Tensor:
            rows = None if encoding is None else take_rows(encoding, start, stop)
            return model.embed(take_rows(x, start, stop), rows)

        z = self._rows(embed, sequences.size(1), self.first)
        for l, block in enumerate(model.blocks, start=1):
            last = l == len(model.blocks)
            z = self._block(
                block, z, sequences, nodes if last else None, model.head if last else None
            )
        return z

    def _block(
        self,
        block: Block,
        z: Tensor,
        sequences: Tensor,
        nodes: Tensor | None,
        head: Callable[[Tensor], Tensor] | None,
    ) -> Tensor:
        attention = block.attention
        normed = block.norm(z)
        with rows_from(self.first):
            mask = attention.mask(z.detach())
        if nodes is not None:
            z, sequences = z[nodes], sequences[:, nodes]
        weights = (attention.values.weight, attention.query.weight, attention.query.bias)
        fixed = (attention, sequences, nodes, self.exchange, self.queries, mask)
        read = _Attend.apply(*fixed, normed, *weights, attention.out.weight)

        def rest(start: int, stop: int, read: Tensor, z: Tensor) -> Tensor:
            z = block.after(read, z)
            return z if head is None else head(z)

        return self._rows(rest, len(z), self.first if nodes is None else self.before, read, z)

    def _rows(
        self, part: Callable[..., Tensor], count: int, first: int, *tensors: Tensor
    ) -> Tensor:
        """``part(start, stop, *rows)`` of ``tensors`` for each chunk, one below the other; every
        chunk draws the same random numbers, those that all rows at once would."""
        random = torch.get_rng_state()
        # One node of autograd for all chunks: a slice for each would make gradients of full size.
        pieces = zip(*(t.split(self.size) for t in tensors), strict=True)
        outs = []
        for start in range(0, max(1, count), self.size):
            torch.set_rng_state(random)
            stop = min(start + self.size, count)
            rows = next(pieces, ())
            outs.append(
                checkpoint(_from, first + start, part, start, stop, *rows, use_reentrant=False)
            )
        return outs[0] if len(outs) == 1 else torch.cat(outs)


def _from(row: int, part: Callable[..., Tensor], *arguments: Any) -> Tensor:
    with rows_from(row):
        return part(*arguments)


class _Attend(torch.autograd.Function):
    """:meth:`dgt.nn.DeformableGraphAttention.forward`, criterion by criterion and chunk by chunk of
    the queries. Keeps its inputs alone."""

    @staticmethod
    def forward(
        ctx: Any,
        attention: DeformableGraphAttention,
        sequences: Tensor,
        nodes: Tensor | None,
        exchange: Exchange,
        size: int,
        mask: Tensor,
        z: Tensor,
        *weights: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(z, mask, *weights)
        ctx.fixed = attention, sequences, nodes, exchange, size
        queries = z if nodes is None else z[nodes]
        out = torch.zeros_like(queries)
        for t in range(attention.criteria):
            values = exchange.gather(_values(attention, t, z, mask, weights[0], size))
            for rows in _slices(len(queries), size):
                sequence = sequences[t : t + 1, rows]
                out[rows] += _read(attention, t, values, sequence, queries[rows], *weights[1:])
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grads
        z, mask, *weights = ctx.saved_tensors
        attention, sequences, nodes, exchange, size = ctx.fixed
        queries = z if nodes is None else z[nodes]
        grad_queries = torch.zeros_like(queries)
        grad_z = grad_queries if nodes is None else torch.zeros_like(z)
        totals = [torch.zeros_like(w) for w in weights]
        C = attention.channels
        for t in range(attention.criteria):
            values = exchange.gather(_values(attention, t, z, mask, weights[0], size))
            grad_values = None
            for rows in _slices(len(queries), size):
                sequence = sequences[t : t + 1, rows]
                with torch.enable_grad():
                    leaves = [
                        leaf.detach().requires_grad_()
                        for leaf in (values, queries[rows], *weights[1:])
                    ]
                    out = _read(attention, t, leaves[0], sequence, *leaves[1:])
                found, grad_queries_, *rest = torch.autograd.grad(out, leaves, grad[rows])
                del leaves, out
                grad_values = found if grad_values is None else grad_values.add_(found)
                del found
                grad_queries[rows] += grad_queries_
                for total, one in zip(totals[1:], rest, strict=True):
                    total += one
            del values
            own = exchange.sum_own(grad_values)
            del grad_values
            columns = slice(t * C, (t + 1) * C)
            for rows in _slices(len(z), size):
                grad_z[rows] += own[rows] @ weights[0][columns] * mask[rows]
                totals[0][columns] += weight_gradient(own[rows], z[rows] * mask[rows])
            del own
        if nodes is not None:
            grad_z.index_add_(0, nodes, grad_queries)
        return *(None,) * 6, grad_z, *totals


def _slices(count: int, size: int) -> list[slice]:
    return [slice(start, min(start + size, count)) for start in range(0, max(1, count), size)]


def _values(
    attention: DeformableGraphAttention, t: int, z: Tensor, mask: Tensor, weight: Tensor, size: int
) -> Tensor:
    """What the nodes have to give to criterion ``t``. Shape: ``(N, C)``."""
    C = attention.channels
    out = torch.empty_like(z)
    for rows in _slices(len(z), size):
        torch.mm(z[rows] * mask[rows], weight[t * C : (t + 1) * C].t(), out=out[rows])
    return out


def _read(
    attention: DeformableGraphAttention,
    t: int,
    values: Tensor,
    sequence: Tensor,
    z: Tensor,
    query_weight: Tensor,
    query_bias: Tensor,
    out_weight: Tensor,
) -> Tensor:
    """What the queries ``z`` read by criterion ``t``. Shape: ``(Q, C)``."""
    T, M, K, C = attention.criteria, attention.heads, attention.keys, attention.channels
    weight = query_weight.view(2, T, M * K, C)[:, t].reshape(2 * M * K, C)
    bias = (query_bias + attention.start.flatten()).view(2, T, M * K)[:, t].reshape(2 * M * K)
    queries = linear(z, weight.t(), bias).view(-1, 2, 1, M, K)
    values = values.view(-1, 1, M, C // M)
    read = attend(values, sequence, queries, attention.kernel).flatten(1)
    return linear(read, out_weight[:, t * C : (t + 1) * C].t())
