"""Operations on the edges of a graph, whose weights may be learned: what attention over a node's
neighbours is made of.

Edges come as the rows of a sparse CSR matrix: those of node ``i`` are ``crow[i]`` to
``crow[i + 1]``, and edge ``e`` comes from node ``col[e]``. Every sum is taken by one thread in the
order of the edges, so that results do not depend on the number of threads.

Axis letters: N nodes, E edges, H heads, C channels.
"""

import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dgt import threads
from dgt.nn import edge_kernels
from dgt.nn.memory import empty


def aggregate(crow: Tensor, col: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    r"""The weighted sums :math:`\sum_{j \in N(i)} w_{ij} \mathbf{v}_j`.

    Args:
        crow: int64. Shape: ``(N + 1,)``.
        col: int64. Shape: ``(E,)``.
        weights: Shape: ``(E, H)``.
        values: Shape: ``(N', H, C)``.

    Returns:
        Shape: ``(N, H, C)``.
    """
    return _aggregate(crow, col, weights, values)


def products(crow: Tensor, col: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    r"""The scores :math:`\mathbf{q}_i^\top \mathbf{k}_j` of every edge, shape ``(E, H)``, of
    queries ``(N, H, C)`` and keys ``(N', H, C)``."""
    return _products(crow, col, queries, keys)


def additive(
    crow: Tensor, col: Tensor, targets: Tensor, sources: Tensor, a: Tensor, slope: float
) -> Tensor:
    r"""The scores :math:`\mathbf{a}^\top \mathrm{LeakyReLU}(\mathbf{t}_i + \mathbf{s}_j)` of every
    edge, shape ``(E, H)``, of targets ``(N, H, C)``, sources ``(N', H, C)`` and a ``(H, C)``."""
    return _additive(crow, col, targets, sources, a, slope)


def directional(crow: Tensor, col: Tensor, places: Tensor, kernels: Tensor, near: float) -> Tensor:
    r"""The scores :math:`\mathbf{k}_{ih}^\top \mathbf{r}_{ij}` of every edge, shape ``(E, H)``, of
    places ``(N, C)`` and kernels ``(N, H, C + 1)``, where :math:`\mathbf{r}_{ij} = [(\mathbf{p}_j -
    \mathbf{p}_i) / \|\mathbf{p}_j - \mathbf{p}_i\| \,\|\, \mathbb{1}[i = j]]`. Places that are
    nearer than ``near`` count as one, without a direction or a gradient for it."""
    return _directional(crow, col, places, kernels, near)


def softmax(crow: Tensor, scores: Tensor) -> Tensor:
    """The softmax of scores ``(E, H)`` over the edges of each node."""
    return _softmax(crow, scores)


def gather(rows: Tensor, index: Tensor) -> Tensor:
    """``rows[index]`` of a matrix ``(N, C)``, with a gradient that is fast and the same for any
    number of threads, which PyTorch's is not."""
    each = torch.arange(len(index) + 1)
    return _aggregate(each, index, rows.new_ones(len(index), 1), rows[:, None])[:, 0]


def total(x: Tensor, dim: int) -> Tensor:
    """The sum over a dimension that is short and not the last, one after the other: PyTorch's own
    depends, in its last bits, on the number of threads."""
    return functools.reduce(torch.add, x.unbind(dim))


def _arrays(*tensors: Tensor) -> list[np.ndarray]:
    return [x.detach().contiguous().numpy() for x in tensors]


def _run(kernel: Any, crow: Tensor, *arguments: Any) -> None:
    threads.run(kernel, 1 + int(crow[-1]) // 4096, *arguments)


def _incoming(crow: Tensor, col: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each node its edges' other ends, and the edges' numbers."""
    start, other = _arrays(crow, col)
    return start, other, np.arange(len(other))


def _outgoing(crow: Tensor, col: Tensor, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same from the sources' side."""
    start, row, edge = edge_kernels.transpose(*_arrays(crow, col), nodes)
    return start, row, edge


def _summed(ends: tuple[np.ndarray, ...], weights: Tensor, values: Tensor) -> Tensor:
    start, other, edge = ends
    out = empty((len(start) - 1, *values.shape[1:]), values.dtype)
    tasks = 1 + len(other) // 4096
    threads.run(
        edge_kernels.weighted_sum, tasks, start, other, edge, *_arrays(weights, values, out)
    )
    return out


# Weighted sums.


@torch.library.custom_op("dgt::edge_aggregate", mutates_args=(), device_types="cpu")
def _aggregate(crow: Tensor, col: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    return _summed(_incoming(crow, col), weights, values)


@_aggregate.register_fake
def _(crow: Tensor, col: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    return values.new_empty(crow.numel() - 1, *values.shape[1:])


@torch.library.custom_op("dgt::edge_aggregate_back", mutates_args=(), device_types="cpu")
def _aggregate_back(crow: Tensor, col: Tensor, weights: Tensor, grad: Tensor, nodes: int) -> Tensor:
    return _summed(_outgoing(crow, col, nodes), weights, grad)


@_aggregate_back.register_fake
def _(crow: Tensor, col: Tensor, weights: Tensor, grad: Tensor, nodes: int) -> Tensor:
    return grad.new_empty(nodes, *grad.shape[1:])


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _aggregate_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    crow, col, weights, values = ctx.saved_tensors
    needs = ctx.needs_input_grad
    return (
        None,
        None,
        _products(crow, col, grad, values) if needs[2] else None,
        _aggregate_back(crow, col, weights, grad, values.size(0)) if needs[3] else None,
    )


_aggregate.register_autograd(_aggregate_gradient, setup_context=_keep)


# Scores by products.


@torch.library.custom_op("dgt::edge_products", mutates_args=(), device_types="cpu")
def _products(crow: Tensor, col: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    out = empty((col.numel(), queries.size(1)), queries.dtype)
    _run(edge_kernels.dot, crow, *_arrays(crow, col, queries, keys, out))
    return out


@_products.register_fake
def _(crow: Tensor, col: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    return queries.new_empty(col.numel(), queries.size(1))


def _products_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    crow, col, queries, keys = ctx.saved_tensors
    return (
        None,
        None,
        _aggregate(crow, col, grad, keys),
        _aggregate_back(crow, col, grad, queries, keys.size(0)),
    )


_products.register_autograd(_products_gradient, setup_context=_keep)


# Scores by sums.


@torch.library.custom_op("dgt::edge_additive", mutates_args=(), device_types="cpu")
def _additive(
    crow: Tensor, col: Tensor, targets: Tensor, sources: Tensor, a: Tensor, slope: float
) -> Tensor:
    out = empty((col.numel(), targets.size(1)), targets.dtype)
    arrays = _arrays(crow, col, targets, sources, a, out)
    _run(edge_kernels.leaky, crow, *arrays, arrays[-1].dtype.type(slope))
    return out


@_additive.register_fake
def _(
    crow: Tensor, col: Tensor, targets: Tensor, sources: Tensor, a: Tensor, slope: float
) -> Tensor:
    return targets.new_empty(col.numel(), targets.size(1))


@torch.library.custom_op("dgt::edge_additive_backward", mutates_args=(), device_types="cpu")
def _additive_backward(
    grad: Tensor, crow: Tensor, col: Tensor, targets: Tensor, sources: Tensor, a: Tensor,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    grad_targets, grad_sources = (empty(tuple(t.shape), t.dtype) for t in (targets, sources))
    grad_a = empty(tuple(targets.shape), targets.dtype)
    arrays = _arrays(grad, a)
    by = arrays[0].dtype.type(slope)
    tasks = 1 + col.numel() // 4096
    for ends, mine, theirs, out in (
        (_incoming(crow, col), targets, sources, grad_targets),
        (_outgoing(crow, col, sources.size(0)), sources, targets, grad_sources),
    ):
        # The gradient of a is summed over each target's edges here, over the targets below.
        of_a = grad_a if out is grad_targets else grad_a[:0]
        more = _arrays(mine, theirs, out, of_a)
        threads.run(edge_kernels.leaky_gradient, tasks, *ends, *arrays, *more, by)
    return grad_targets, grad_sources, grad_a.sum(0)


@_additive_backward.register_fake
def _(
    grad: Tensor, crow: Tensor, col: Tensor, targets: Tensor, sources: Tensor, a: Tensor,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    return torch.empty_like(targets), torch.empty_like(sources), torch.empty_like(a)


def _additive_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.slope = inputs
    ctx.save_for_backward(*tensors)


def _additive_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, *_additive_backward(grad, *ctx.saved_tensors, ctx.slope), None


_additive.register_autograd(_additive_gradient, setup_context=_additive_context)


# Scores by directions.


@torch.library.custom_op("dgt::edge_directional", mutates_args=(), device_types="cpu")
def _directional(crow: Tensor, col: Tensor, places: Tensor, kernels: Tensor, near: float) -> Tensor:
    out = empty((col.numel(), kernels.size(1)), kernels.dtype)
    _run(edge_kernels.direct, crow, *_arrays(crow, col, places, kernels, out), near)
    return out


@_directional.register_fake
def _(crow: Tensor, col: Tensor, places: Tensor, kernels: Tensor, near: float) -> Tensor:
    return kernels.new_empty(col.numel(), kernels.size(1))


@torch.library.custom_op("dgt::edge_directional_backward", mutates_args=(), device_types="cpu")
def _directional_backward(
    grad: Tensor, crow: Tensor, col: Tensor, places: Tensor, kernels: Tensor, near: float
) -> tuple[Tensor, Tensor]:
    grad_places, grad_kernels = (empty(tuple(t.shape), t.dtype) for t in (places, kernels))
    # By edges' steps from one place to the other; the sources' side of them is summed below.
    steps = empty((col.numel(), places.size(1)), places.dtype)
    arrays = _arrays(grad, crow, col, places, kernels, grad_places, grad_kernels, steps)
    _run(edge_kernels.direct_gradient, crow, *arrays, near)
    ones = torch.ones_like(places)[..., None]
    arriving = _summed(_outgoing(crow, col, len(places)), steps, ones)
    return grad_places + arriving[..., 0], grad_kernels


@_directional_backward.register_fake
def _(
    grad: Tensor, crow: Tensor, col: Tensor, places: Tensor, kernels: Tensor, near: float
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(places), torch.empty_like(kernels)


def _directional_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.near = inputs
    ctx.save_for_backward(*tensors)


def _directional_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, *_directional_backward(grad, *ctx.saved_tensors, ctx.near), None


_directional.register_autograd(_directional_gradient, setup_context=_directional_context)


# Softmax.


@torch.library.custom_op("dgt::edge_softmax", mutates_args=(), device_types="cpu")
def _softmax(crow: Tensor, scores: Tensor) -> Tensor:
    out = empty(tuple(scores.shape), scores.dtype)
    _run(edge_kernels.normalize, crow, *_arrays(crow, scores, out))
    return out


@_softmax.register_fake
def _(crow: Tensor, scores: Tensor) -> Tensor:
    return torch.empty_like(scores)


@torch.library.custom_op("dgt::edge_softmax_backward", mutates_args=(), device_types="cpu")
def _softmax_backward(crow: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    out = empty(tuple(grad.shape), grad.dtype)
    _run(edge_kernels.normalize_gradient, crow, *_arrays(crow, weights, grad, out))
    return out


@_softmax_backward.register_fake
def _(crow: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    return torch.empty_like(grad)


def _softmax_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)


def _softmax_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, _softmax_backward(*ctx.saved_tensors, grad)


_softmax.register_autograd(_softmax_gradient, setup_context=_softmax_context)
