"""Attention of one rank, which reads values that other ranks own."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor


class Exchange(Protocol):
    """How ranks, each of which owns a range of the nodes, exchange their values."""

    def gather(self, own: Tensor) -> Tensor:
        """Returns the rows of all nodes, given the rows of the nodes that each rank owns."""

    def sum_own(self, rows: Tensor) -> Tensor:
        """Returns the rows of the nodes that this rank owns, summed over all ranks."""


class Exchanged(torch.autograd.Function):
    """Gathers the values of all nodes, and computes an attention operator for the own queries.

    The backward pass gathers the values again, which takes less memory than keeping them. It adds
    up the gradients of values over all ranks before it rounds them.

    Args:
        forward: The operator.
        backward: The operator that computes the gradients of the values and of further inputs. The
            former may be in double precision.
        exchange: Exchanges rows between ranks.
        values: The values of the nodes that this rank owns. Shape: ``(n, T, M, D)``.
        *inputs: The further inputs of the operator.
    """

    @staticmethod
    def forward(
        ctx: Any,
        forward: Callable[..., Tensor],
        backward: Callable[..., tuple[Tensor, ...]],
        exchange: Exchange,
        values: Tensor,
        *inputs: Any,
    ) -> Tensor:
        # Under autocast, some inputs may have another precision.
        tensors = [_like(x, values) for x in inputs if isinstance(x, Tensor)]
        numbers = [x for x in inputs if not isinstance(x, Tensor)]
        ctx.save_for_backward(values, *tensors)
        ctx.backward, ctx.exchange, ctx.numbers = backward, exchange, numbers
        return forward(_gather(values, exchange), *tensors, *numbers)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        values, *tensors = ctx.saved_tensors
        everything = _gather(values, ctx.exchange)
        of_values, *others = ctx.backward(grads[0], everything, *tensors, *ctx.numbers)
        del everything
        own = ctx.exchange.sum_own(of_values.flatten(1)).view_as(values)
        # Sequences and closeness, which come first, get no gradient.
        none = len(tensors) - len(others)
        return None, None, None, own, *[None] * none, *others, *[None] * len(ctx.numbers)


def _gather(values: Tensor, exchange: Exchange) -> Tensor:
    return exchange.gather(values.flatten(1)).unflatten(1, values.shape[1:])


def _like(x: Tensor, values: Tensor) -> Tensor:
    return x.to(values.dtype) if x.is_floating_point() else x
