"""Feature similarity by blocked products on a GPU, with the order and the ties of the CPU.

Products of rounded unit rows are exact in float64, so that the order of summation does not matter.
"""

import numpy as np
import torch
from torch import Tensor

LOW = 2**32


def most_similar(
    rows: Tensor, start: int, count: int, length: int, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the nodes most similar to each base node, by descending score, ties by id.

    Args:
        rows: Rounded unit rows of all nodes, float64. Shape: ``(N, F)``.
        start: The first base node.
        count: Number of base nodes B.
        length: Length L of the sequences.
        scale: Factor from products to scores, which are rounded.

    Returns:
        The nodes, int32, padded with -1, the base node first; and their scores, 0 for the base
        node and for padding. Shapes: ``(B, L)``.
    """
    N, device = rows.size(0), rows.device
    scores = torch.floor(rows[start : start + count] @ rows.T * scale + 0.5).long()
    ids = torch.arange(N, device=device)
    # One unique integer per node: the score in the high bits, then the smaller id first.
    keys = (scores * LOW + (LOW - 1 - ids)).where(scores > 0, -1)
    own = torch.arange(count, device=device)
    keys[own, start + own] = 2**62
    best = keys.topk(min(length, N), dim=1).values.cpu()
    nodes = torch.full((count, length), -1, dtype=torch.int32)
    found = torch.zeros(count, length, dtype=torch.float64)
    width = best.size(1)
    nodes[:, :width] = (LOW - 1 - best % LOW).where(best >= 0, -1).int()
    nodes[:, 0] = torch.arange(start, start + count, dtype=torch.int32)
    found[:, 1:width] = (best[:, 1:] // LOW).where(best[:, 1:] >= 0, 0).double()
    return nodes.numpy(), found.numpy()
