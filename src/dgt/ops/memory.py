"""A caching allocator for the outputs of our own operators.

The operating system hands out new memory page by page, and takes large buffers back as soon as they
are freed; on graphs with many nodes, that takes longer than the computation. Freed buffers are
therefore kept for outputs of the same size, as PyTorch does on GPUs.
"""

import math
import threading
import weakref
from collections import defaultdict

import numpy as np
import torch
from torch import Tensor

LINE = 64  # bytes of a cache line
LEAST = 2**20  # bytes; smaller buffers are fast to allocate anyway


class Pool:
    """Buffers by size; a buffer that no tensor uses any more is lent again."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a buffer may come back while another is being lent
        self.idle: defaultdict[int, list[np.ndarray]] = defaultdict(list)
        self.idle_bytes = 0
        self.lent_bytes = 0

    def lend(self, size: int) -> np.ndarray:
        """Returns a buffer, which comes back to the pool when its last tensor is deleted."""
        with self.lock:
            if self.idle[size]:
                room = self.idle[size].pop()
                self.idle_bytes -= size
            else:
                # Keep no more idle memory than is in use.
                if self.idle_bytes > self.lent_bytes:
                    self.clear()
                room = _aligned(size)
            self.lent_bytes += size
        buffer = room[:]
        weakref.finalize(buffer, self._take_back, room).atexit = False
        return buffer

    def _take_back(self, room: np.ndarray) -> None:
        with self.lock:
            self.idle[room.size].append(room)
            self.idle_bytes += room.size
            self.lent_bytes -= room.size

    def clear(self) -> None:
        """Frees all idle buffers."""
        with self.lock:
            self.idle.clear()
            self.idle_bytes = 0


POOL = Pool()


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """:func:`torch.empty` on the CPU, from the pool and aligned to cache lines, so that a row of 16
    floats takes one line and not two."""
    size = math.prod(shape) * dtype.itemsize
    if size < LEAST:
        return torch.empty(shape, dtype=dtype, device="cpu")  # PyTorch aligns to cache lines too
    return torch.from_numpy(POOL.lend(size)).view(dtype).view(shape)


def convert(x: Tensor, dtype: torch.dtype) -> Tensor:
    """``x.to(dtype)``, on the CPU with memory from the pool."""
    # PyTorch copies a lazily negated view to another dtype with the wrong sign.
    return empty(x.shape, dtype).copy_(x.resolve_neg()) if x.is_cpu else x.to(dtype)


def _aligned(size: int) -> np.ndarray:
    # NumPy asks the operating system for huge pages, which PyTorch does not do by default.
    room = np.empty(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size]
