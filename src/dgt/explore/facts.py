"""What is known about a run and about single nodes, as plain values."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from dgt.config import CRITERIA
from dgt.data.splits import PARTS
from dgt.explore.session import NO_PART, Session

LONGEST_NAME = 300
MOST_COLUMNS = 12


def short(text: object) -> str:
    """Returns a text to show. The middle of a very long one is left out."""
    whole = str(text)
    if len(whole) <= LONGEST_NAME:
        return whole
    return f"{whole[: LONGEST_NAME - 60]} … {whole[-50:]}"


def describe(session: Session) -> dict[str, Any]:
    """Describes the run, its graph and its model."""
    inside, config = session.inside, session.config
    metrics = getattr(session.classifier, "metrics_", None) or {}
    kernel = config.model
    return {
        "name": short(session.run.name or session.run),
        "graph": short(session.graph),
        "model": config.model.model,
        "nodes": session.num_nodes,
        "edges": inside.data.edge_index.size(1) // 2,
        "classes": [short(name) for name in inside.facts.class_names],
        "features": len(session.feature_names),
        "attention": session.attention,
        "metric": metrics.get("metric"),
        "scores": {part: metrics.get(part, {}).get(metrics.get("metric")) for part in PARTS},
        "best_epoch": metrics.get("best_epoch"),
        "epochs": session.epochs,
        "criteria": [short(CRITERIA.name(each)) for each in config.criteria],
        "blocks": session.blocks,
        "heads": config.model.heads,
        "keys": config.model.keys,
        "length": config.sequences.length,
        "kernel": {
            "interpolation": kernel.interpolation,
            "gamma": kernel.gamma,
            "epsilon": kernel.epsilon,
            "normalize": kernel.normalize,
        },
    }


def brief(session: Session, nodes: Iterable[int]) -> dict[int, dict[str, Any]]:
    """Returns the id, label, prediction, probability and degree of some nodes."""
    inside = session.inside
    return {
        node: {
            "id": short(inside.ids[node]),
            "label": int(session.labels[node]),
            "prediction": int(session.predictions[node]),
            "probability": float(session.confidence[node]),
            "degree": int(session.degrees[node]),
        }
        for node in {int(node) for node in nodes}
    }


def node_facts(session: Session, node: int) -> dict[str, Any]:
    """Returns all facts about one node except its attention."""
    part = session.parts[node]
    near = session.adjacency.indices[
        session.adjacency.indptr[node] : session.adjacency.indptr[node + 1]
    ]
    labels = session.labels[near]
    same = labels[labels >= 0] == session.labels[node]
    labeled = session.labels[node] >= 0 and len(same) > 0
    return {
        "node": node,
        **brief(session, [node])[node],
        "part": None if part == NO_PART else PARTS[part],
        "probabilities": session.probabilities[node].tolist(),
        "homophily": float(same.mean()) if labeled else None,
        "columns": columns(session, node),
    }


def columns(session: Session, node: int, text: str = "", limit: int = MOST_COLUMNS) -> Any:
    """Returns columns of a node's features, by descending size of their values.

    Args:
        session: The run.
        node: The node.
        text: Part of the names of the columns.
        limit: Maximum number of columns.

    Returns:
        ``shown``, a list of column, name and value, and ``total``, the number that match.
    """
    values = session.inside.data.x[node].numpy()
    names = session.feature_names
    if text:
        lowered = text.lower()
        found = np.array([i for i, name in enumerate(names) if lowered in name.lower()], dtype=int)
    else:
        found = np.flatnonzero(values)
    order = found[np.argsort(-np.abs(values[found]), kind="stable")]
    return {
        "total": len(order),
        "shown": [
            {"column": int(i), "name": short(names[i]), "value": float(values[i])}
            for i in order[:limit]
        ],
    }
