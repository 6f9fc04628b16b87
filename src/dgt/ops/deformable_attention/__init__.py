"""Deformable attention, which reads sequences of nodes at fractional positions.

``reference`` is the readable form. ``cpu``, ``loops``, ``simd`` and ``vectors`` are the fused form
for the CPU. ``triton``, ``triton_kernels``, ``triton_gather``, ``triton_sizes`` and ``transpose``
are the fused form for GPUs. ``operator`` registers all of them. ``exchanged`` reads values that
other ranks own.
"""

from dgt.ops.deformable_attention.exchanged import Exchange
from dgt.ops.deformable_attention.operator import deformable_attention
from dgt.ops.deformable_attention.reference import Kernel

__all__ = ["Exchange", "Kernel", "deformable_attention"]
