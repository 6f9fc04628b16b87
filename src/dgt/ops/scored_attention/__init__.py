"""Deformable attention whose weights also depend on the nodes that are read."""

from dgt.ops.scored_attention.operator import scored_attention

__all__ = ["scored_attention"]
