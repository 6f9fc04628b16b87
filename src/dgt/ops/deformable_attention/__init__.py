"""Deformable attention, which reads sequences of nodes at fractional positions.

``reference`` is the readable form. ``cpu``, ``loops`` and ``simd`` are the fused form for the CPU.
``operator`` registers both.
"""

from dgt.ops.deformable_attention.operator import deformable_attention
from dgt.ops.deformable_attention.reference import Kernel

__all__ = ["Kernel", "deformable_attention"]
