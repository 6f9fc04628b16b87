"""Memory for the results of our own operators, used again from one to the next.

The system hands out new memory page by page, and takes a large block back as soon as it is free;
on graphs with many nodes that takes longer than the work in it. So blocks that are free again are
kept for results of the same size, as PyTorch does on a GPU.
"""

import math
import threading
import weakref
from collections import defaultdict

import numpy as np
import torch
from torch import Tensor

LINE = 64  # bytes of a cache line
LEAST = 2**20  # bytes; smaller blocks come quickly from the system's own store


class Pool:
    """Blocks of memory by their size; those that no tensor holds any more are lent again."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a block may come back while another is being lent
        self.idle: defaultdict[int, list[np.ndarray]] = defaultdict(list)
        self.idle_bytes = 0
        self.lent_bytes = 0

    def lend(self, size: int) -> np.ndarray:
        """A block that comes back by itself when its last tensor is gone."""
        with self.lock:
            if self.idle[size]:
                room = self.idle[size].pop()
                self.idle_bytes -= size
            else:
                # What earlier work left must not stand beside more than as much again.
                if self.idle_bytes > self.lent_bytes:
                    self.clear()
                room = _aligned(size)
            self.lent_bytes += size
        block = room[:]
        weakref.finalize(block, self._take_back, room).atexit = False
        return block

    def _take_back(self, room: np.ndarray) -> None:
        with self.lock:
            self.idle[room.size].append(room)
            self.idle_bytes += room.size
            self.lent_bytes -= room.size

    def clear(self) -> None:
        """Gives the blocks that are not lent back to the system."""
        with self.lock:
            self.idle.clear()
            self.idle_bytes = 0


POOL = Pool()


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """:func:`torch.empty` on the CPU, from the pool, and starting on a cache line, so that a row of
    16 floats is one line and not two."""
    size = math.prod(shape) * dtype.itemsize
    block = POOL.lend(size) if size >= LEAST else _aligned(size)
    return torch.from_numpy(block).view(dtype).view(shape)


def _aligned(size: int) -> np.ndarray:
    # From numpy, which asks the system for huge pages where PyTorch by default does not.
    room = np.empty(size + LINE, np.uint8)
    start = -room.ctypes.data % LINE
    return room[start : start + size]
