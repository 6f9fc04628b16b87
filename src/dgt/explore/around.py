"""The neighborhood of a node, laid out in the plane, with the nodes that it attends to."""

from typing import Any

import numpy as np
import scipy.sparse

from dgt.explore.attention import attended, follow, heaviest, with_hops
from dgt.explore.hops import next_hop
from dgt.explore.layout import spring_layout
from dgt.explore.session import Session

MOST_NODES = 150
MOST_LINKS = 20


def around(
    session: Session, node: int, hops: int, block: int, epoch: int | None = None
) -> dict[str, Any]:
    """Returns the nodes within some hops, at most MOST_NODES, and the attended nodes anywhere.

    Returns:
        ``nodes`` with facts, hops and ``x`` and ``y`` from -1 to 1; ``edges`` between them;
        ``links``, the attended nodes with their weights; and ``total``, the number of nodes within
        the hops, or of those that were counted if ``more``.
    """
    found = follow(session, node, epoch) if session.attention == "sequences" else None
    weights = attended(session, node, block, found)
    links = heaviest(weights)[:MOST_LINKS]
    near, total, more = neighborhood(session.adjacency, node, hops, weights)
    shown = [*near, *(n for n, _ in links if n not in set(near))]
    part = session.adjacency[shown][:, shown].tocoo()
    edges = [(int(a), int(b)) for a, b in zip(part.row, part.col, strict=True) if a < b]
    places = spring_layout(len(near), len(shown), edges)
    facts = with_hops(session, node, set(shown))
    return {
        "nodes": [
            {"node": n, "near": i < len(near), "x": float(x), "y": float(y), **facts[n]}
            for i, (n, (x, y)) in enumerate(zip(shown, places, strict=True))
        ],
        "edges": [(shown[a], shown[b]) for a, b in edges],
        "links": [{"node": n, "weight": w} for n, w in links],
        "total": total,
        "more": more,
    }


def neighborhood(
    A: scipy.sparse.csr_array, node: int, hops: int, weights: dict[int, float]
) -> tuple[list[int], int, bool]:
    """Returns at most MOST_NODES nodes within some hops: by hop, then by attention, then by index.

    Returns:
        The nodes, starting with the node itself; the number of nodes found; and whether there may
        be more, because the search ended when it had found more than it could show.
    """
    found, frontier = [node], np.array([node])
    seen = np.zeros(A.shape[0], dtype=bool)
    seen[node] = True
    for hop in range(hops):
        frontier = next_hop(A, frontier, seen)
        found += sorted(frontier.tolist(), key=lambda n: -weights.get(n, 0.0))
        if len(found) > MOST_NODES:
            return found[:MOST_NODES], len(found), hop + 1 < hops
        if not len(frontier):
            break
    return found, len(found), False
