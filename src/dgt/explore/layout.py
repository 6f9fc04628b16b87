"""A force-directed layout of a small graph (Fruchterman and Reingold, 1991)."""

import math
from collections.abc import Sequence

import numpy as np

STEPS = 80


def spring_layout(near: int, count: int, edges: Sequence[tuple[int, int]]) -> np.ndarray:
    """Places nodes in the plane: linked nodes attract each other, and all nodes repel each other.

    Node 0 stays in the middle. The result is the same in every call.

    Args:
        near: Number of nodes that the forces move. The others are placed on a circle around them.
        count: Number of all nodes.
        edges: Pairs of nodes.

    Returns:
        Coordinates from -1 to 1. Shape: ``(count, 2)``.
    """
    places = _spiral(near)
    pairs = np.array([e for e in edges if max(e) < near], dtype=np.int64).reshape(-1, 2)
    ideal = 1.6 / np.sqrt(max(near, 1))
    for step in range(STEPS):
        apart = places[:, None] - places[None]  # (near, near, 2)
        square = (apart**2).sum(-1) + 1e-6
        force = (apart * (ideal**2 / square)[..., None]).sum(1)
        along = places[pairs[:, 0]] - places[pairs[:, 1]]
        pull = along * (np.sqrt((along**2).sum(-1)) / ideal)[:, None]
        np.add.at(force, pairs[:, 0], -pull)
        np.add.at(force, pairs[:, 1], pull)
        force -= 0.4 * places  # keeps separate parts together
        size = np.sqrt((force**2).sum(-1, keepdims=True)) + 1e-9
        places = places + force / size * np.minimum(size, 0.15 * (1 - step / STEPS) + 0.002)
        places -= places[:1]
    largest = np.abs(places).max(initial=1e-9)
    inner = places / largest * (0.62 if count > near else 1.0)
    return np.concatenate([inner, _ring(count - near)]).clip(-1, 1)


def _spiral(count: int) -> np.ndarray:
    """Points on a spiral, which start evenly spread."""
    i = np.arange(count)
    angle, radius = i * 2.399963, np.sqrt(i / max(count, 1))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def _ring(count: int) -> np.ndarray:
    """Points on a circle. Those that follow each other, with similar attention, lie apart."""
    stride = next(s for s in range(int(0.38 * count) + 1, count + 2) if math.gcd(s, count) == 1)
    angle = 2 * np.pi * (np.arange(count) * stride + 0.5) / max(count, 1) - np.pi / 2
    return 0.97 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
