"""What a model predicts after changes to its graph or to its keys."""

from typing import Any

import torch

from dgt.errors import InputError
from dgt.explore.attention import as_view, predicted
from dgt.explore.changed import FEW_NODES, ChangedInputs, changed_graph
from dgt.explore.edits import Edits
from dgt.explore.session import Session
from dgt.explore.trace import trace
from dgt.nn import DGT, DGTPlus
from dgt.prepare import ONE_GRAPH, carries_over, prepare


def what_if(
    session: Session, node: int, edits: Edits, block: int, epoch: int | None = None
) -> dict[str, Any]:
    """Returns the class probabilities and the prediction of a node before and after the changes.

    Returns:
        ``before``, ``after``, ``held``, which says what was not computed again, and ``view``, the
        attention of the node after the changes, if the model has sequences.
    """
    model = session.model_at(epoch)
    if not isinstance(model, DGT | DGTPlus):
        return _whole(session, node, edits)
    before = trace(model, ChangedInputs(session, Edits(), node), node)
    inputs = ChangedInputs(session, edits, node)
    after = trace(model, inputs, node, edits.keys)
    return {
        "before": predicted(session, before.logits),
        "after": predicted(session, after.logits),
        "held": inputs.held,
        "view": as_view(session, node, block, after),
    }


def _whole(session: Session, node: int, edits: Edits) -> dict[str, Any]:
    """Computes all nodes again, for models whose predictions depend on all of them."""
    inside, config = session.inside, session.config
    if session.num_nodes > FEW_NODES:
        raise InputError(
            f"what if: {config.model.model} has to compute all nodes again, which is done on "
            f"graphs of up to {FEW_NODES:,} nodes, got {session.num_nodes:,}"
        )
    inputs = prepare(changed_graph(session, edits).data, config, session.anchors)
    fixed = [name for name in inputs if name in ONE_GRAPH]
    if "encoding" in inputs and carries_over(config) == "edges":
        fixed.append("encoding")
    inputs |= {name: inside.inputs[name] for name in fixed}
    held = [f"The input {name!r} is that of the unchanged graph." for name in fixed]
    if edits.nodes and session.attention == "full":
        held.append("Full attention still reads a hidden node, without its edges and features.")
    with torch.no_grad():
        logits = inside.model(**inputs)[node]
    return {
        "before": predicted(session, inside.logits[node]),
        "after": predicted(session, logits),
        "held": held,
        "view": None,
    }
