"""The best of many nodes, kept sorted while they come in."""

from numba import njit


@njit(cache=True, nogil=True)
def insert(nodes, scores, filled, node, score):  # type: ignore[no-untyped-def]
    """Puts a node into its place by descending score, then by id, and returns the new number of
    nodes; when there is no room, the last one falls out."""
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
