"""The counts encoding: how many links and features a node has, by powers of two."""

import math

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import EncodingConfig
from dgt.data.matrices import features
from dgt.encodings.degree import degree_columns
from dgt.encodings.encoding import Encoding

OCTAVES = 20
"""Counts from 2^20 - 1 on, about a million, are not told apart."""


def count_columns(data: Data) -> Tensor:
    r"""Spreads the numbers :math:`n` of a node's in-links, out-links, neighbors and features that
    are not zero over 21 columns each:

    .. math::
        \max(0, 1 - |\log_2(1 + n) - k|), \qquad k = 0, 1, \dots, 20

    Between two columns, their shares sum to 1. A linear layer over them is thus any function of
    :math:`\log_2(1 + n)` with bends at whole numbers, where that of a single column would be a
    line. If the direction of the edges is not known, in-links and out-links are the neighbors.

    The formula has no constant of the graph, so that the columns mean the same on every graph.

    Returns:
        float32 ``(N, 84)``.
    """
    x = features(data)
    words = np.asarray((x != 0).sum(axis=1)).reshape(-1, 1)
    logarithms = torch.cat(
        [
            degree_columns(data).double() / math.log10(2),
            torch.from_numpy(np.log2(1 + words.astype(np.float64))),
        ],
        dim=1,
    )  # (N, 4)
    steps = torch.arange(OCTAVES + 1)
    distances = (logarithms.clamp(max=OCTAVES)[:, :, None] - steps).abs()
    return (1 - distances).clamp(min=0).flatten(1).float()


def _columns(data: Data, settings: EncodingConfig, anchors: Tensor | None) -> Tensor:
    return count_columns(data)


COUNTS = Encoding(columns=_columns, carries_over="always", direction="used")
