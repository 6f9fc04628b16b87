"""Deformable Graph Attention and the models built on it: the paper's equations as modules.

The fused operators that the modules call live in :mod:`dgt.ops`, the models that the paper compares
with in :mod:`dgt.baselines`, and the training loop in :mod:`dgt.training`.
"""

from dgt.nn.attention import DeformableGraphAttention
from dgt.nn.from_config import DGT_LIGHT_MODEL, DGT_MODEL, build
from dgt.nn.model import DGT, Attention, DGTLight
from dgt.nn.plus import DGTPlus
from dgt.nn.plus_config import DGT_PLUS_MODEL
from dgt.nn.positional import KatzEncoding
from dgt.nn.record import Model, Sizes
from dgt.nn.scored import ScoredGraphAttention
from dgt.ops.deformable_attention.reference import Kernel

__all__ = [
    "DGT",
    "DGT_LIGHT_MODEL",
    "DGT_MODEL",
    "DGT_PLUS_MODEL",
    "Attention",
    "DGTLight",
    "DGTPlus",
    "DeformableGraphAttention",
    "KatzEncoding",
    "Kernel",
    "Model",
    "ScoredGraphAttention",
    "Sizes",
    "build",
]
