"""Fused operations on edges for the CPU: runs the loops of ``loops`` on all threads."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dgt.ops.define import arrays
from dgt.ops.edges import loops
from dgt.ops.memory import empty
from dgt.system import threads

Ends = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The first edge of each node, and the other end and the index of each edge."""


def aggregate(crow: Tensor, col: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    return _sum(_incoming(crow, col), weights, values)


def aggregate_back(crow: Tensor, col: Tensor, weights: Tensor, grad: Tensor, nodes: int) -> Tensor:
    return _sum(_outgoing(crow, col, nodes), weights, grad)


def products(crow: Tensor, col: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    out = empty((col.numel(), queries.size(1)), queries.dtype)
    _run(loops.dot, crow, *arrays(crow, col, queries, keys, out))
    return out


def additive(
    crow: Tensor, col: Tensor, targets: Tensor, sources: Tensor, a: Tensor, slope: float
) -> Tensor:
    out = empty((col.numel(), targets.size(1)), targets.dtype)
    inputs = arrays(crow, col, targets, sources, a, out)
    _run(loops.leaky, crow, *inputs, inputs[-1].dtype.type(slope))
    return out


def additive_backward(
    grad: Tensor,
    crow: Tensor,
    col: Tensor,
    targets: Tensor,
    sources: Tensor,
    a: Tensor,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:
    grad_targets, grad_sources = (empty(tuple(t.shape), t.dtype) for t in (targets, sources))
    grad_a = empty(tuple(targets.shape), targets.dtype)
    inputs = arrays(grad, a)
    by = inputs[0].dtype.type(slope)
    tasks = 1 + col.numel() // 4096
    for ends, mine, theirs, out in (
        (_incoming(crow, col), targets, sources, grad_targets),
        (_outgoing(crow, col, sources.size(0)), sources, targets, grad_sources),
    ):
        # The gradient of a is summed over the edges of each target here, and over the targets
        # below.
        of_a = grad_a if out is grad_targets else grad_a[:0]
        more = arrays(mine, theirs, out, of_a)
        threads.run(loops.leaky_gradient, tasks, *ends, *inputs, *more, by)
    return grad_targets, grad_sources, grad_a.sum(0)


def directional(crow: Tensor, col: Tensor, places: Tensor, kernels: Tensor, near: float) -> Tensor:
    out = empty((col.numel(), kernels.size(1)), kernels.dtype)
    _run(loops.direct, crow, *arrays(crow, col, places, kernels, out), near)
    return out


def directional_backward(
    grad: Tensor, crow: Tensor, col: Tensor, places: Tensor, kernels: Tensor, near: float
) -> tuple[Tensor, Tensor]:
    grad_places, grad_kernels = (empty(tuple(t.shape), t.dtype) for t in (places, kernels))
    # Gradients of the steps from target to source; they are summed per source below.
    steps = empty((col.numel(), places.size(1)), places.dtype)
    inputs = arrays(grad, crow, col, places, kernels, grad_places, grad_kernels, steps)
    _run(loops.direct_gradient, crow, *inputs, near)
    ones = torch.ones_like(places)[..., None]
    arriving = _sum(_outgoing(crow, col, len(places)), steps, ones)
    return grad_places + arriving[..., 0], grad_kernels


def softmax(crow: Tensor, scores: Tensor) -> Tensor:
    out = empty(tuple(scores.shape), scores.dtype)
    _run(loops.normalize, crow, *arrays(crow, scores, out))
    return out


def softmax_backward(crow: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    out = empty(tuple(grad.shape), grad.dtype)
    _run(loops.normalize_gradient, crow, *arrays(crow, weights, grad, out))
    return out


def _run(loop: Any, crow: Tensor, *arguments: Any) -> None:
    threads.run(loop, 1 + int(crow[-1]) // 4096, *arguments)


def _incoming(crow: Tensor, col: Tensor) -> Ends:
    """Returns the edges of each node as a target."""
    start, other = arrays(crow, col)
    return start, other, np.arange(len(other))


def _outgoing(crow: Tensor, col: Tensor, nodes: int) -> Ends:
    """Returns the edges of each node as a source."""
    start, row, edge = loops.transpose(*arrays(crow, col), nodes)
    return start, row, edge


def _sum(ends: Ends, weights: Tensor, values: Tensor) -> Tensor:
    start, other, edge = ends
    out = empty((len(start) - 1, *values.shape[1:]), values.dtype)
    tasks = 1 + len(other) // 4096
    threads.run(loops.weighted_sum, tasks, start, other, edge, *arrays(weights, values, out))
    return out
