"""Dropout that costs little on a CPU and keeps no mask.

PyTorch draws its random numbers one after the other on one core, and keeps the mask for the
backward pass; on graphs with many nodes that takes longer than the matrix products beside it. Here
the random number of a value is a hash of its place and of one seed drawn from PyTorch's generator,
so that threads can share the work and the backward pass makes the mask anew.
"""

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numba import njit
from torch import Tensor, nn

from dgt import threads

BLOCK = 8192  # values that share a key; a block is the unit of work


class Dropout(nn.Module):
    r"""Sets each value to zero with probability ``p`` in training, and scales the others by
    :math:`1 / (1 - p)`."""

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p must be at least 0 and below 1, got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """:func:`torch.nn.functional.dropout`, fast on the CPU."""
    if not training or p == 0:
        return x
    if not x.is_cpu:
        return F.dropout(x, p)
    return _dropout(x, torch.randint(2**62, ()), p)


@torch.library.custom_op("dgt::dropout", mutates_args=(), device_types="cpu")
def _dropout(x: Tensor, seed: Tensor, p: float) -> Tensor:
    x = x.detach().contiguous()
    out = torch.empty_like(x)
    key, threshold = np.uint64(seed.item()), np.uint32(round(p * 2**32))
    arrays = (x.numpy().reshape(-1), out.numpy().reshape(-1))
    scale = arrays[0].dtype.type(1 / (1 - p))
    threads.run(_apply, 1 + x.numel() // (4 * BLOCK), *arrays, key, threshold, scale)
    return out


@_dropout.register_fake
def _(x: Tensor, seed: Tensor, p: float) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    _, seed, ctx.p = inputs
    ctx.save_for_backward(seed)


def _autograd(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
    return _dropout(grad, *ctx.saved_tensors, ctx.p), None, None


_dropout.register_autograd(_autograd, setup_context=_setup_context)


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
    thread: int, threads: int, x: Any, out: Any, seed: Any, threshold: Any, scale: Any
) -> None:
    zero = x.dtype.type(0)
    low, high = np.uint32(seed & np.uint64(0xFFFFFFFF)), np.uint32(seed >> np.uint64(32))
    for block in range(thread, (x.size + BLOCK - 1) // BLOCK, threads):
        key = np.uint32(_mix(np.uint32(_mix(np.uint32(block) ^ low)) ^ high))
        source = x[block * BLOCK : (block + 1) * BLOCK]
        target = out[block * BLOCK : (block + 1) * BLOCK]
        for i in range(source.size):
            keep = _mix(np.uint32(np.uint32(i) ^ key)) >= threshold
            target[i] = source[i] * scale if keep else zero
