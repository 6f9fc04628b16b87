"""Sequences by similarity of features."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor


def similarity(x: Tensor, length: int, advance: Callable[[int], None]) -> np.ndarray:
    unit = torch.nn.functional.normalize(x.double(), dim=1)
    sequences = np.full((len(x), length), -1, dtype=np.int32)
    for start in range(0, len(x), 512):
        cosine = unit[start : start + 512] @ unit.T
        rows = torch.arange(len(cosine))
        cosine[rows, start + rows] = 2
        cosine = (cosine * 1e6).round()
        values, order = cosine.sort(dim=1, descending=True, stable=True)
        order[values <= 0] = -1
        order = order[:, :length]
        sequences[start : start + 512, : order.size(1)] = order
        advance(len(cosine))
    return sequences
