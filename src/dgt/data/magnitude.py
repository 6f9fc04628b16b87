"""The largest feature that training can compute with."""

import math

LARGEST = 1e15
"""Largest magnitude of a feature: squares and their sums must not overflow in single precision."""


def magnitude(value: float) -> str:
    """Returns what is expected of a feature that is not finite or too large."""
    if math.isfinite(value):
        return f"expected a magnitude of at most {LARGEST:g}; rescale the feature"
    return "expected a finite number"
