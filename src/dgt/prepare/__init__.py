"""Computes the input tensors of a model from a graph and the settings."""

from dgt.prepare.criteria import with_default_criteria
from dgt.prepare.inputs import INPUTS, Inputs, prepare
from dgt.prepare.precomputation import precompute
from dgt.prepare.reads import ONE_GRAPH, carries_over, reads_direction, reads_labels

__all__ = [
    "INPUTS",
    "ONE_GRAPH",
    "Inputs",
    "carries_over",
    "precompute",
    "prepare",
    "reads_direction",
    "reads_labels",
    "with_default_criteria",
]
