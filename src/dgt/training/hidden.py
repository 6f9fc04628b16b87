"""Training and prediction with known labels as input, of which some are hidden."""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from dgt.training.batching import Batched, Forward, Whole

# Share of the training nodes that a step learns from, and whose labels it hides.
SHARE = 0.1


class Hidden(Whole):
    """Another way to take steps, with the labels of training nodes among the inputs. The labels of
    the nodes whose logits are asked for are hidden, so that no node's own label reaches its logits.

    Args:
        steps: What a step works on.
        known: The nodes with known labels, of the whole graph.
    """

    def __init__(self, steps: Whole, known: Tensor) -> None:
        super().__init__(steps.given)
        self.steps = steps
        self.known = known

    def batches(self, nodes: Tensor) -> Iterable[Tensor]:
        """Returns one random part of the training nodes, a step per epoch; of batches, all, but
        none larger than such a part, since a step must see most of the labels."""
        few = max(1, round(SHARE * len(nodes)))
        order = torch.randperm(len(nodes))
        if isinstance(self.steps, Batched):
            return nodes[order.to(nodes.device)].split(min(few, self.steps.size))
        return (nodes[order[:few].sort().values.to(nodes.device)],)

    def pieces(self, nodes: Tensor) -> Iterable[Tensor]:
        return self.steps.pieces(nodes)

    def logits(self, model: Forward, nodes: Tensor | None = None) -> Tensor:
        if nodes is None:
            return self.predict(model)[self.own(torch.arange(self.steps.num_nodes))]
        return self.steps.hiding(nodes).logits(model, nodes)

    def inputs_of(self, nodes: Tensor) -> dict[str, Any]:
        return self.steps.hiding(nodes).inputs_of(nodes)

    def predict(self, model: Forward) -> Tensor:
        """Returns the logits of all nodes: of those with known labels in parts as large as those of
        training, each with its labels hidden, and of all others at once."""
        others = torch.ones(self.steps.num_nodes, dtype=torch.bool, device=self.known.device)
        others[self.known] = False
        count = min(round(1 / SHARE), len(self.known))
        parts = [others.nonzero().squeeze(1), *(self.known[i::count] for i in range(count))]
        logits = []
        for part in parts:
            hidden = self.steps.hiding(part)
            for piece in self.steps.pieces(part) if len(part) else ():
                logits.append(self.steps.all_of(hidden.logits(model, piece), piece))
        order = torch.cat(parts).to(logits[0].device)
        return torch.empty_like(found := torch.cat(logits)).index_copy(0, order, found)

    def own(self, nodes: Tensor) -> Tensor:
        return self.steps.own(nodes)

    def all_of(self, rows: Tensor, nodes: Tensor) -> Tensor:
        return self.steps.all_of(rows, nodes)

    def add_up(self, tensors: Iterable[Tensor]) -> None:
        self.steps.add_up(tensors)

    def gradients(self, model: nn.Module) -> AbstractContextManager[None]:
        return self.steps.gradients(model)

    def identity(self) -> str:
        return f"{self.steps.identity()} hidden {SHARE}"
