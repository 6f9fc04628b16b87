"""Training and prediction with known labels as input, of which some are hidden."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from dgt.storage.fingerprint import fingerprint
from dgt.training.batching import Forward, Whole

# Share of the training nodes that a step learns from, and whose labels it hides.
SHARE = 0.1


class Hidden(Whole):
    """All nodes at once, with the labels of training nodes among the inputs. The labels of the
    nodes whose logits are asked for are hidden, so that no node's own label reaches its logits.

    Args:
        inputs: The model's keyword arguments, except for ``nodes``.
    """

    def batches(self, nodes: Tensor) -> Iterable[Tensor]:
        """Returns one random part of the training nodes: a step per epoch."""
        few = max(1, round(SHARE * len(nodes)))
        order = torch.randperm(len(nodes))[:few].sort().values
        return (nodes[order.to(nodes.device)],)

    def logits(self, model: Forward, nodes: Tensor | None = None) -> Tensor:
        if nodes is None:
            return self.predict(model)
        return model(**self.inputs_of(nodes), nodes=nodes)

    def inputs_of(self, nodes: Tensor) -> dict[str, Any]:
        labels = self.given["labels"]
        return {**self.given, "labels": labels.index_fill(0, nodes.to(labels.device), 0)}

    def predict(self, model: Forward) -> Tensor:
        """Returns the logits of all nodes: of those with known labels in parts as large as those of
        training, each with its labels hidden, and of all others at once."""
        known = self.given["labels"].any(dim=1)
        of_others = self.logits(model, (~known).nonzero().squeeze(1))
        logits = of_others.new_empty(len(known), of_others.size(1))
        logits[~known] = of_others
        nodes, parts = known.nonzero().squeeze(1), round(1 / SHARE)
        for part in range(min(parts, len(nodes))):
            own = nodes[part::parts]
            logits[own] = self.logits(model, own)
        return logits

    def identity(self) -> str:
        return fingerprint(self.given.values(), ("hidden", SHARE))
