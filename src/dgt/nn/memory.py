"""Memory for the results of our own operators."""

import math

import numpy as np
import torch
from torch import Tensor


def empty(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """:func:`torch.empty` on the CPU, but from numpy, which asks the system for huge pages where
    PyTorch by default does not, and starting on a cache line, so that a row of 16 floats is one
    line and not two. New memory comes page by page: in small pages that takes longer than filling
    it."""
    size = math.prod(shape) * dtype.itemsize
    room = np.empty(size + 64, np.uint8)
    start = -room.ctypes.data % 64
    return torch.from_numpy(room[start : start + size]).view(dtype).view(shape)
