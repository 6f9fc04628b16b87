"""Dropout that costs little on a CPU and keeps no mask.

PyTorch draws its random numbers one after the other on one core, and keeps the mask for the
backward pass; on graphs with many nodes that takes longer than the matrix products beside it. Here
the random number of a value is a hash of its place and of one seed drawn from PyTorch's generator,
so that threads can share the work and the backward pass makes the mask anew. The place is that in
the whole tensor, also where only some rows of it are at hand (:func:`rows_from`): the masks are the
same whether a graph is worked through at once, in chunks or by several processes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numba import njit
from torch import Tensor, nn

from dgt import threads
from dgt.nn.linear import weight_gradient
from dgt.nn.memory import empty

BLOCK = 8192  # values that share a key; a block is the unit of work
ROWS = 8192  # rows of a linear layer's input that are dropped at a time


_first_row = ContextVar("first_row", default=0)


@contextmanager
def rows_from(row: int) -> Iterator[None]:
    """What is dropped inside are the rows of a larger tensor from this one on."""
    token = _first_row.set(row)
    try:
        yield
    finally:
        _first_row.reset(token)


class Dropout(nn.Module):
    r"""Sets each value to zero with probability ``p`` in training, and scales the others by
    :math:`1 / (1 - p)`; with ``relu``, after a ReLU in the same pass over the memory."""

    def __init__(self, p: float, *, relu: bool = False) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p must be at least 0 and below 1, got {p}")
        self.p = p
        self.relu = relu

    def forward(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """Adds ``plus``, which is not dropped, in the same pass."""
        return dropout(x, self.p, self.training, relu=self.relu, plus=plus)

    def extra_repr(self) -> str:
        return f"p={self.p}" + ", relu=True" * self.relu


def dropout(
    x: Tensor,
    p: float,
    training: bool = True,
    *,
    relu: bool = False,
    plus: Tensor | None = None,
    start: int | None = None,
) -> Tensor:
    """:func:`torch.nn.functional.dropout`, fast on the CPU; with ``relu``, of the positive part;
    with ``plus``, added to it. ``start`` is the number of values before these in the whole tensor,
    by default that of the rows before them."""
    if training and p > 0 and x.is_cpu:
        if relu and plus is not None:
            raise ValueError("relu and plus: the gradient of both in one pass is not written")
        if start is None:
            start = _first_row.get() * x[0].numel() if len(x) else 0
        return _dropout(x, torch.randint(2**62, ()), p, relu, plus, start)
    x = F.dropout(F.relu(x) if relu else x, p, training)
    return x if plus is None else x + plus


def dropout_rows(x: Tensor, p: float, training: bool = True) -> Tensor:
    """``x * dropout(ones(N, 1), p)``: whole rows of a matrix are set to zero."""
    if not training or p == 0:
        return x
    if x.is_cpu:
        return _dropout_rows(x, torch.randint(2**62, ()), p, _first_row.get())
    return x * F.dropout(torch.ones_like(x[:, :1]), p)


@torch.library.custom_op("dgt::dropout", mutates_args=(), device_types="cpu")
def _dropout(
    x: Tensor, seed: Tensor, p: float, relu: bool, plus: Tensor | None, start: int
) -> Tensor:
    out = empty(x.shape, x.dtype)
    arrays = _flat(x, out)
    key, threshold = np.uint64(seed.item()), np.uint32(round(p * 2**32))
    scale = arrays[0].dtype.type(1 / (1 - p))
    added = arrays[0][:0] if plus is None else _flat(plus)[0]
    threads.run(_apply, _tasks(x), *arrays, key, threshold, scale, relu, added, start)
    return out


@torch.library.custom_op("dgt::dropout_rows", mutates_args=(), device_types="cpu")
def _dropout_rows(x: Tensor, seed: Tensor, p: float, start: int) -> Tensor:
    factors = _dropout(torch.ones(x.size(0), dtype=x.dtype), seed, p, False, None, start)
    return torch.mul(x, factors[:, None], out=empty(x.shape, x.dtype))


def dropout_linear(x: Tensor, weight: Tensor, bias: Tensor, p: float, row: int = 0) -> Tensor:
    """``dropout(x, p) @ weight + bias`` for data ``x`` that needs no gradient, some rows at a time,
    so that the dropped values never exist as a whole. ``row`` is the first one's place in the
    whole."""
    return _dropout_linear(x, weight, bias, torch.randint(2**62, ()), p, row)


def _blocks(x: Tensor, seed: Tensor, p: float, row: int) -> Iterator[tuple[slice, Tensor]]:
    """Some rows at a time of ``x``, whose first is ``row`` in the whole, and these dropped; each
    ``ROWS`` of the whole have a seed of their own."""
    for i in range(row // ROWS, -(-(row + x.size(0)) // ROWS)):
        rows = slice(max(0, i * ROWS - row), (i + 1) * ROWS - row)
        start = (row + rows.start - i * ROWS) * x.size(1)
        yield rows, _dropout(x[rows], seed + i, p, False, None, start)


@torch.library.custom_op("dgt::dropout_linear", mutates_args=(), device_types="cpu")
def _dropout_linear(
    x: Tensor, weight: Tensor, bias: Tensor, seed: Tensor, p: float, row: int
) -> Tensor:
    out = empty((x.size(0), weight.size(1)), x.dtype)
    for rows, dropped in _blocks(x, seed, p, row):
        torch.addmm(bias, dropped, weight, out=out[rows])
    return out


@torch.library.custom_op("dgt::dropout_linear_backward", mutates_args=(), device_types="cpu")
def _dropout_linear_backward(grad: Tensor, x: Tensor, seed: Tensor, p: float, row: int) -> Tensor:
    total = torch.zeros(x.size(1), grad.size(1), dtype=x.dtype)
    for rows, dropped in _blocks(x, seed, p, row):
        total += weight_gradient(dropped, grad[rows])
    return total


@torch.library.custom_op("dgt::relu_dropout_backward", mutates_args=(), device_types="cpu")
def _relu_backward(grad: Tensor, out: Tensor, p: float) -> Tensor:
    result = empty(grad.shape, grad.dtype)
    arrays = _flat(grad, out, result)
    threads.run(_where_positive, _tasks(grad), *arrays, arrays[0].dtype.type(1 / (1 - p)))
    return result


def _flat(*tensors: Tensor) -> list[np.ndarray]:
    return [x.detach().contiguous().numpy().reshape(-1) for x in tensors]


def _tasks(x: Tensor) -> int:
    """Small tensors are not worth a second thread."""
    return 1 + x.numel() // (4 * BLOCK)


@_dropout.register_fake
def _(x: Tensor, seed: Tensor, p: float, relu: bool, plus: Tensor | None, start: int) -> Tensor:
    return x.new_empty(x.shape)


@_dropout_rows.register_fake
def _(x: Tensor, seed: Tensor, p: float, start: int) -> Tensor:
    return x.new_empty(x.shape)


@_relu_backward.register_fake
def _(grad: Tensor, out: Tensor, p: float) -> Tensor:
    return grad.new_empty(grad.shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, seed, ctx.p, ctx.relu, plus, ctx.start = inputs
    ctx.added = plus is not None
    # Where the output of ReLU and dropout is positive, there its gradient passes.
    ctx.save_for_backward(output if ctx.relu else seed)


def _autograd(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    (saved,) = ctx.saved_tensors
    if ctx.relu:
        grad_x = _relu_backward(grad, saved, ctx.p)
    else:
        grad_x = _dropout(grad, saved, ctx.p, False, None, ctx.start)
    return grad_x, None, None, None, grad if ctx.added else None, None


_dropout.register_autograd(_autograd, setup_context=_setup_context)


def _setup_rows(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, seed, ctx.p, ctx.start = inputs
    ctx.save_for_backward(seed)


def _rows_autograd(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return _dropout_rows(grad, *ctx.saved_tensors, ctx.p, ctx.start), None, None, None


_dropout_rows.register_autograd(_rows_autograd, setup_context=_setup_rows)


@_dropout_linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor, seed: Tensor, p: float, row: int) -> Tensor:
    return x.new_empty(x.size(0), weight.size(1))


@_dropout_linear_backward.register_fake
def _(grad: Tensor, x: Tensor, seed: Tensor, p: float, row: int) -> Tensor:
    return x.new_empty(x.size(1), grad.size(1))


def _setup_linear(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, _, _, seed, ctx.p, ctx.row = inputs
    ctx.save_for_backward(x, seed)


def _linear_autograd(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    grad_weight = _dropout_linear_backward(grad, *ctx.saved_tensors, ctx.p, ctx.row)
    return None, grad_weight, grad.sum(0), None, None, None


_dropout_linear.register_autograd(_linear_autograd, setup_context=_setup_linear)


@njit(cache=True, error_model="numpy")
def _mix(h: Any) -> Any:
    """A hash of 32 bits to 32 bits: each bit of the input moves every bit of the output."""
    h = np.uint32(h ^ (h >> np.uint32(16)))
    h = np.uint32(h * np.uint32(0x7FEB352D))
    h = np.uint32(h ^ (h >> np.uint32(15)))
    h = np.uint32(h * np.uint32(0x846CA68B))
    return np.uint32(h ^ (h >> np.uint32(16)))


@njit(cache=True, error_model="numpy", nogil=True)
def _apply(
    thread: int, threads: int, x: Any, out: Any, seed: Any, threshold: Any, scale: Any,
    relu: bool, plus: Any, start: int,
) -> None:  # fmt: skip
    zero = x.dtype.type(0)
    floor = zero if relu else x.dtype.type(-np.inf)
    low, high = np.uint32(seed & np.uint64(0xFFFFFFFF)), np.uint32(seed >> np.uint64(32))
    for block in range(start // BLOCK + thread, (start + x.size + BLOCK - 1) // BLOCK, threads):
        key = np.uint32(_mix(np.uint32(_mix(np.uint32(block) ^ low)) ^ high))
        first = max(0, block * BLOCK - start)
        end = (block + 1) * BLOCK - start
        place = start + first - block * BLOCK  # of the first value in its block
        source, target = x[first:end], out[first:end]
        for i in range(source.size):
            keep = _mix(np.uint32(np.uint32(place + i) ^ key)) >= threshold
            # A NaN is kept by the second comparison, so that it is not lost.
            target[i] = source[i] * scale if keep and not source[i] < floor else zero
        if plus.size:
            added = plus[first:end]
            for i in range(source.size):
                target[i] += added[i]


@njit(cache=True, error_model="numpy", nogil=True)
def _where_positive(thread: int, threads: int, grad: Any, gate: Any, out: Any, scale: Any) -> None:
    zero = grad.dtype.type(0)
    for block in range(thread, (grad.size + BLOCK - 1) // BLOCK, threads):
        source = grad[block * BLOCK : (block + 1) * BLOCK]
        passed = gate[block * BLOCK : (block + 1) * BLOCK]
        target = out[block * BLOCK : (block + 1) * BLOCK]
        for i in range(source.size):
            target[i] = source[i] * scale if passed[i] > zero else zero
