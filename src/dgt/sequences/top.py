"""Keeps the best nodes of a stream, sorted."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath={"nsz", "nnan", "reassoc"})
def largest(values):  # type: ignore[no-untyped-def]
    """The largest of some values, at least -infinity."""
    most = np.float32(-np.inf)
    for i in range(len(values)):
        most = max(most, values[i])
    return most


@njit(cache=True, nogil=True)
def insert(nodes, scores, filled, node, score):  # type: ignore[no-untyped-def]
    """Inserts a node, sorted by descending score, then by id. A full list drops its last node.

    Returns:
        The new number of nodes in the list.
    """
    room = len(nodes)
    place = filled
    if filled == room:
        last = scores[room - 1]
        if score < last or (score == last and node > nodes[room - 1]):
            return filled
        place = room - 1
    while place > 0 and (
        scores[place - 1] < score or (scores[place - 1] == score and nodes[place - 1] > node)
    ):
        nodes[place] = nodes[place - 1]
        scores[place] = scores[place - 1]
        place -= 1
    nodes[place] = node
    scores[place] = score
    return min(filled + 1, room)
