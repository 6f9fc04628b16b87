"""Fused dropout for the CPU, compiled by numba."""

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor

from dgt.ops.define import arrays
from dgt.ops.dropout.reference import GROUP, dropped_rows, threshold_of
from dgt.ops.half import statistics_type
from dgt.ops.linear import weight_gradient
from dgt.ops.memory import empty
from dgt.ops.sums import uses_blocks
from dgt.system import threads


def dropout(
    x: Tensor, seed: Tensor, p: float, relu: bool, plus: Tensor | None, start: int
) -> Tensor:
    x = x.to(statistics_type(x))
    out = empty(x.shape, x.dtype)
    source, target = _flat(x, out)
    key, threshold = np.uint64(seed.item()), np.uint32(threshold_of(p))
    scale = source.dtype.type(1 / (1 - p))
    added = source[:0] if plus is None else _flat(plus)[0]
    threads.run(_apply, _tasks(x), source, target, key, threshold, scale, relu, added, start)
    return out


def relu_dropout_backward(grad: Tensor, out: Tensor, p: float) -> Tensor:
    result = empty(grad.shape, grad.dtype)
    flat = _flat(grad, out, result)
    threads.run(_where_positive, _tasks(grad), *flat, flat[0].dtype.type(1 / (1 - p)))
    return result


def dropout_linear(
    x: Tensor, weight: Tensor, bias: Tensor, seed: Tensor, p: float, row: int
) -> Tensor:
    out = empty((x.size(0), weight.size(1)), x.dtype)
    single = statistics_type(x)
    weight, bias = weight.to(single), bias.to(single)
    for rows, dropped in dropped_rows(dropout, x, seed, p, row):
        if x.dtype == single:
            torch.addmm(bias, dropped, weight, out=out[rows])
        else:
            out[rows] = torch.addmm(bias, dropped, weight)
    return out


def dropout_linear_backward(grad: Tensor, x: Tensor, seed: Tensor, p: float, row: int) -> Tensor:
    return sum_dropped(grad, x, seed, p, row).to(x.dtype)


def sum_dropped(grad: Tensor, x: Tensor, seed: Tensor, p: float, row: int) -> Tensor:
    """Returns the gradient of the weight, in double precision if there are several blocks."""
    single = statistics_type(x)
    total = torch.zeros(x.size(1), grad.size(1), dtype=torch.double if uses_blocks(x) else single)
    for rows, dropped in dropped_rows(dropout, x, seed, p, row):
        total += weight_gradient(dropped, grad[rows].to(single))
    return total


def _flat(*tensors: Tensor) -> list[np.ndarray]:
    return [x.reshape(-1) for x in arrays(*tensors)]


def _tasks(x: Tensor) -> int:
    """Returns the number of tasks; small tensors are not worth a second thread."""
    return 1 + x.numel() // (4 * GROUP)


@njit(cache=True, error_model="numpy")
def _mix(h: Any) -> Any:
    """Computes the hash of the plain form."""
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
    for group in range(start // GROUP + thread, (start + x.size + GROUP - 1) // GROUP, threads):
        key = np.uint32(_mix(np.uint32(_mix(np.uint32(group) ^ low)) ^ high))
        first = max(0, group * GROUP - start)
        end = (group + 1) * GROUP - start
        index = start + first - group * GROUP  # of the first value in its group
        source, target = x[first:end], out[first:end]
        for i in range(source.size):
            keep = _mix(np.uint32(np.uint32(index + i) ^ key)) >= threshold
            # The negated comparison keeps NaN.
            target[i] = source[i] * scale if keep and not source[i] < floor else zero
        if plus.size:
            added = plus[first:end]
            for i in range(source.size):
                target[i] += added[i]


@njit(cache=True, error_model="numpy", nogil=True)
def _where_positive(thread: int, threads: int, grad: Any, gate: Any, out: Any, scale: Any) -> None:
    zero = grad.dtype.type(0)
    for group in range(thread, (grad.size + GROUP - 1) // GROUP, threads):
        source = grad[group * GROUP : (group + 1) * GROUP]
        passed = gate[group * GROUP : (group + 1) * GROUP]
        target = out[group * GROUP : (group + 1) * GROUP]
        for i in range(source.size):
            target[i] = source[i] * scale if passed[i] > zero else zero
