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
from numba import njit
from torch import Tensor

from dgt import threads
from dgt.nn.memory import empty

FAST: dict[str, Any] = {
    "cache": True,
    "fastmath": {"reassoc", "contract", "nsz"},
    "error_model": "numpy",
    "nogil": True,
}


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
    start, row, edge = _transpose(*_arrays(crow, col), nodes)
    return start, row, edge


def _summed(ends: tuple[np.ndarray, ...], weights: Tensor, values: Tensor) -> Tensor:
    start, other, edge = ends
    out = empty((len(start) - 1, *values.shape[1:]), values.dtype)
    tasks = 1 + len(other) // 4096
    threads.run(_sum, tasks, start, other, edge, *_arrays(weights, values, out))
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
    _run(_dot, crow, *_arrays(crow, col, queries, keys, out))
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
    _run(_leaky, crow, *arrays, arrays[-1].dtype.type(slope))
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
        threads.run(_leaky_gradient, tasks, *ends, *arrays, *more, by)
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
    _run(_direct, crow, *_arrays(crow, col, places, kernels, out), near)
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
    _run(_direct_gradient, crow, *arrays, near)
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
    _run(_normalize, crow, *_arrays(crow, scores, out))
    return out


@_softmax.register_fake
def _(crow: Tensor, scores: Tensor) -> Tensor:
    return torch.empty_like(scores)


@torch.library.custom_op("dgt::edge_softmax_backward", mutates_args=(), device_types="cpu")
def _softmax_backward(crow: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    out = empty(tuple(grad.shape), grad.dtype)
    _run(_normalize_gradient, crow, *_arrays(crow, weights, grad, out))
    return out


@_softmax_backward.register_fake
def _(crow: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    return torch.empty_like(grad)


def _softmax_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)


def _softmax_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, _softmax_backward(*ctx.saved_tensors, grad)


_softmax.register_autograd(_softmax_gradient, setup_context=_softmax_context)


# The kernels.


@njit(cache=True, error_model="numpy", nogil=True)
def _transpose(crow: Any, col: Any, columns: int) -> tuple[Any, Any, Any]:
    start = np.zeros(columns + 1, np.int64)
    for j in col:
        start[j + 1] += 1
    start = start.cumsum()
    row, edge, at = np.empty_like(col), np.empty_like(col), start.copy()
    for i in range(len(crow) - 1):
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            row[at[j]], edge[at[j]] = i, e
            at[j] += 1
    return start, row, edge


@njit(**FAST)
def _sum(
    thread: int, threads: int, start: Any, other: Any, edge: Any, weights: Any, values: Any,
    out: Any,
) -> None:  # fmt: skip
    N, H, C = out.shape
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        out[i] = 0
        for at in range(start[i], start[i + 1]):
            j, e = other[at], edge[at]
            for h in range(H):
                w = weights[e, h]
                for c in range(C):
                    out[i, h, c] += w * values[j, h, c]


@njit(**FAST)
def _dot(thread: int, threads: int, crow: Any, col: Any, queries: Any, keys: Any, out: Any) -> None:
    N, H, C = queries.shape
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            for h in range(H):
                total = out.dtype.type(0)
                for c in range(C):
                    total += queries[i, h, c] * keys[j, h, c]
                out[e, h] = total


@njit(**FAST)
def _leaky(
    thread: int, threads: int, crow: Any, col: Any, targets: Any, sources: Any, a: Any, out: Any,
    slope: Any,
) -> None:  # fmt: skip
    N, H, C = targets.shape
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            for h in range(H):
                total = out.dtype.type(0)
                for c in range(C):
                    z = targets[i, h, c] + sources[j, h, c]
                    total += a[h, c] * (z if z > 0 else slope * z)
                out[e, h] = total


@njit(**FAST)
def _leaky_gradient(
    thread: int, threads: int, start: Any, other: Any, edge: Any, grad: Any, a: Any, mine: Any,
    theirs: Any, out: Any, of_a: Any, slope: Any,
) -> None:  # fmt: skip
    N, H, C = mine.shape
    one = out.dtype.type(1)
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        out[i] = 0
        if of_a.size:
            of_a[i] = 0
        for at in range(start[i], start[i + 1]):
            j, e = other[at], edge[at]
            for h in range(H):
                g = grad[e, h]
                for c in range(C):
                    z = mine[i, h, c] + theirs[j, h, c]
                    s = one if z > 0 else slope
                    out[i, h, c] += g * a[h, c] * s
                    if of_a.size:
                        of_a[i, h, c] += g * z * s


@njit(**FAST)
def _direction(places: Any, i: int, j: int, near: float, u: Any) -> Any:
    """Writes the direction from i to j into u, and gives their distance, or 0 if they are near."""
    squares = u.dtype.type(0)
    for c in range(len(u)):
        u[c] = places[j, c] - places[i, c]
        squares += u[c] * u[c]
    apart = np.sqrt(squares)
    if apart < near:
        u[:] = 0
        return u.dtype.type(0)
    u /= apart
    return apart


@njit(**FAST)
def _direct(
    thread: int, threads: int, crow: Any, col: Any, places: Any, kernels: Any, out: Any, near: float
) -> None:
    N, C = places.shape
    H = kernels.shape[1]
    u = np.empty(C, places.dtype)
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            _direction(places, i, j, near, u)
            for h in range(H):
                total = kernels[i, h, C] if i == j else out.dtype.type(0)
                for c in range(C):
                    total += kernels[i, h, c] * u[c]
                out[e, h] = total


@njit(**FAST)
def _direct_gradient(
    thread: int, threads: int, grad: Any, crow: Any, col: Any, places: Any, kernels: Any,
    grad_places: Any, grad_kernels: Any, steps: Any, near: float,
) -> None:  # fmt: skip
    N, C = places.shape
    H = kernels.shape[1]
    u = np.empty(C, places.dtype)
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        grad_places[i] = 0
        grad_kernels[i] = 0
        for e in range(crow[i], crow[i + 1]):
            j = col[e]
            apart = _direction(places, i, j, near, u)
            steps[e] = 0
            for h in range(H):
                g = grad[e, h]
                if i == j:
                    grad_kernels[i, h, C] += g
                for c in range(C):
                    grad_kernels[i, h, c] += g * u[c]
                    steps[e, c] += g * kernels[i, h, c]
            if apart == 0:
                steps[e] = 0
                continue
            # What is along the direction does not change it.
            along = u.dtype.type(0)
            for c in range(C):
                along += steps[e, c] * u[c]
            for c in range(C):
                steps[e, c] = (steps[e, c] - along * u[c]) / apart
                grad_places[i, c] -= steps[e, c]


@njit(**FAST)
def _normalize(thread: int, threads: int, crow: Any, scores: Any, out: Any) -> None:
    N, H = len(crow) - 1, scores.shape[1]
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for h in range(H):
            largest = -np.inf
            for e in range(crow[i], crow[i + 1]):
                largest = max(largest, scores[e, h])
            total = out.dtype.type(0)
            for e in range(crow[i], crow[i + 1]):
                out[e, h] = np.exp(scores[e, h] - out.dtype.type(largest))
                total += out[e, h]
            for e in range(crow[i], crow[i + 1]):
                out[e, h] /= total


@njit(**FAST)
def _normalize_gradient(
    thread: int, threads: int, crow: Any, weights: Any, grad: Any, out: Any
) -> None:
    N, H = len(crow) - 1, weights.shape[1]
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        for h in range(H):
            along = out.dtype.type(0)
            for e in range(crow[i], crow[i + 1]):
                along += weights[e, h] * grad[e, h]
            for e in range(crow[i], crow[i + 1]):
                out[e, h] = weights[e, h] * (grad[e, h] - along)
