"""The attention of one node: its sequences as ribbons, and the nodes that it attends to."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from dgt.errors import InputError
from dgt.explore.facts import brief
from dgt.explore.hops import hops_to
from dgt.explore.session import Session
from dgt.explore.trace import Inputs, Look, Trace, trace
from dgt.nn import DGT, DGTPlus

MOST_POSITIONS = 512
MOST_KEYS = 50


def follow(session: Session, node: int, epoch: int | None = None) -> Trace:
    """Follows a node through the model of a run.

    Args:
        session: The run.
        node: The node.
        epoch: A kept epoch (default: the trained model).
    """
    model = session.model_at(epoch)
    if not isinstance(model, DGT | DGTPlus):
        raise InputError(f"{session.config.model.model}: this model has no sequences")
    return trace(model, Inputs(session.inputs_of(node)), node)


def predicted(session: Session, logits: Tensor) -> dict[str, Any]:
    """Returns the probability of each class, and the predicted class, for the logits of a node.

    With a threshold, the predicted class need not be the most likely one.
    """
    task = session.inside.task
    return {
        "probabilities": task.scores(logits[None])[0].tolist(),
        "prediction": int(task.predict(logits[None])[0]),
    }


def ribbons(look: Look) -> list[dict[str, Any]]:
    """Returns the sequences of a node, one per criterion.

    Each has ``nodes``, ``weights`` by head and position, and ``keys`` by head, each with its
    ``position`` and its ``attention``. Of very long sequences, the first positions are returned,
    and ``beyond``, the mean weight by head on the others.
    """
    rows = []
    for t, sequence in enumerate(look.sequences):
        length = int((sequence >= 0).sum())
        shown = min(length, MOST_POSITIONS)
        weights = look.weights[t]
        rows.append(
            {
                "nodes": sequence[:shown].tolist(),
                "length": length,
                "weights": weights[:, :shown].tolist(),
                "beyond": float(weights[:, shown:].sum(1).mean()),
                "keys": [
                    [{"position": p, "attention": a} for p, a in zip(*both, strict=True)]
                    for both in zip(
                        look.positions[t].tolist(), look.attention[t].tolist(), strict=True
                    )
                ],
            }
        )
    return rows


def node_weights(look: Look) -> dict[int, float]:
    """Sums the weights of each node over all criteria and heads; they then sum to 1."""
    sequences = look.sequences.unsqueeze(1).expand_as(look.weights).flatten().numpy()
    weights = look.weights.flatten().double().numpy()
    inside = (sequences >= 0) & (weights > 0)
    nodes, place = np.unique(sequences[inside], return_inverse=True)
    total = np.bincount(place, weights[inside], minlength=len(nodes))
    return dict(zip(nodes.tolist(), (total / max(total.sum(), 1e-300)).tolist(), strict=True))


def attended(session: Session, node: int, block: int, found: Trace | None) -> dict[int, float]:
    """Returns the share of a node's attention on each node, or nothing without attention."""
    if found is not None:
        return node_weights(found.blocks[block])
    if session.attention == "none":
        return {}
    weights = session.inside.weights(torch.tensor([node]))[0].numpy()
    nodes = np.argsort(-weights, kind="stable")[:MOST_KEYS]
    return {int(n): float(weights[n]) for n in nodes if weights[n] > 0}


def heaviest(weights: dict[int, float]) -> list[tuple[int, float]]:
    """Returns the nodes with most attention, ties by index."""
    return sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_KEYS]


def view(session: Session, node: int, block: int, epoch: int | None = None) -> dict[str, Any]:
    """Returns the attention of a node in one block."""
    found = follow(session, node, epoch) if session.attention == "sequences" else None
    return as_view(session, node, block, found)


def as_view(session: Session, node: int, block: int, found: Trace | None) -> dict[str, Any]:
    """Describes a node's attention: ``ribbons``, ``attended``, ``same_label``, and ``nodes``, all
    nodes that they mention, with their ``hops`` from the node."""
    weights = attended(session, node, block, found)
    top = heaviest(weights)
    rows = ribbons(found.blocks[block]) if found is not None else []
    mentioned = {node, *(n for n, _ in top), *(n for row in rows for n in row["nodes"])}
    label = session.labels[node]
    same = sum(w for n, w in weights.items() if session.labels[n] == label)
    return {
        "ribbons": rows,
        "attended": [{"node": n, "weight": w} for n, w in top],
        "attended_total": len(weights),
        "same_label": same if label >= 0 and found is not None else None,
        "predicted": None if found is None else predicted(session, found.logits),
        "nodes": with_hops(session, node, mentioned),
    }


def with_hops(session: Session, node: int, others: set[int]) -> dict[int, dict[str, Any]]:
    """Returns brief facts about some nodes, and their distance from a node."""
    hops = hops_to(session.adjacency, node, others)
    return {n: {**facts, "hops": hops[n]} for n, facts in brief(session, others).items()}
