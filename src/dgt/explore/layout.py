"""A force-directed layout of a small graph (Fruchterman and Reingold, 1991)."""

import math
from collections.abc import Sequence

import numpy as np

STEPS = 80
# Share of the radius for the nodes that the forces move, if others lie on a circle around them.
INNER = 0.8


def spring_layout(near: int, count: int, edges: Sequence[tuple[int, int]]) -> np.ndarray:
    """Places nodes in the plane: linked nodes attract each other, and all nodes repel each other.

    The result is the same in every call.

    Args:
        near: Number of nodes that the forces move. The others are placed on a circle around them.
        count: Number of all nodes.
        edges: Pairs of nodes.

    Returns:
        Coordinates from -1 to 1. Shape: ``(count, 2)``.
    """
    places = _spiral(near)
    pairs = np.array([e for e in edges if max(e) < near], dtype=np.int64).reshape(-1, 2)
    ideal = 1.8 / np.sqrt(max(near, 1))
    for step in range(STEPS):
        sizes = (places**2).sum(1)
        square = sizes[:, None] + sizes - 2 * places @ places.T  # squared distances, (near, near)
        push = ideal**2 / np.maximum(square, 1e-6)
        force = places * push.sum(1, keepdims=True) - push @ places
        along = places[pairs[:, 0]] - places[pairs[:, 1]]
        pull = along * (np.sqrt((along**2).sum(-1)) / ideal)[:, None]
        np.add.at(force, pairs[:, 0], -pull)
        np.add.at(force, pairs[:, 1], pull)
        force -= 0.2 * places  # keeps separate parts together
        size = np.sqrt((force**2).sum(-1, keepdims=True)) + 1e-9
        places = places + force / size * np.minimum(size, 0.2 * (1 - step / STEPS) + 0.002)
    inner = _fill_disc(places) * (INNER if count > near else 1.0)
    return np.concatenate([inner, _ring(count - near)]).clip(-1, 1)


def _fill_disc(places: np.ndarray) -> np.ndarray:
    """Moves points into the unit disc, and those in a crowded middle apart."""
    if len(places) < 2:
        return np.zeros_like(places)
    centered = places - (places.max(0) + places.min(0)) / 2
    radius = np.sqrt((centered**2).sum(1))
    # Half way to a uniform density: the share of points within a radius grows with its square.
    uniform = np.sqrt((np.argsort(np.argsort(radius)) + 0.5) / len(radius))
    wanted = (radius / max(radius.max(), 1e-9) + uniform) / 2
    return centered * (wanted / np.maximum(radius, 1e-9))[:, None]


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
