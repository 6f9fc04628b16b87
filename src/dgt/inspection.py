"""A trained model on a graph, opened for a look inside."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from dgt.config import Config
from dgt.data.labels import is_labeled
from dgt.data.recipe import as_given
from dgt.errors import InputError
from dgt.explain import Explanation, explain, find_node, has_attention, model_weights
from dgt.nn.ensemble import members_of
from dgt.runs.facts import Facts
from dgt.runs.identity import node_ids
from dgt.training.batching import Whole
from dgt.training.task import Task


@dataclass
class Inspection:
    """What a trained model makes of a graph. Everything is computed when it is first used.

    :meth:`dgt.NodeClassifier.inspect` returns it.
    """

    config: Config
    model: nn.Module
    """The model, in evaluation mode."""
    facts: Facts
    """The classes and features that the model knows."""
    task: Task
    data: Data
    """The normalized graph."""
    steps: Whole
    """The inputs of the model, and how much of the graph is computed at a time."""

    @property
    def inputs(self) -> dict[str, Any]:
        """The model's keyword arguments, except for ``nodes``."""
        return dict(self.steps.given)

    def of_first_member(self) -> "Inspection":
        """Returns the first network of an ensemble; a single network stays as it is."""
        return replace(self, model=members_of(self.model)[0])

    @cached_property
    def ids(self) -> Sequence[int | str]:
        """The user's id of each node."""
        return node_ids(self.data)

    @cached_property
    def y(self) -> Tensor:
        """The class of each node, as the model numbers them; -1: no label. Shape: ``(N,)``."""
        return self.facts.labels(self.data)

    @property
    def labeled(self) -> Tensor:
        """The nodes with a label, bool. Shape: ``(N,)``."""
        return is_labeled(self.y)

    @cached_property
    def logits(self) -> Tensor:
        """Shape: ``(N, C)``, on the CPU."""
        return self.logits_of(self.model)

    @property
    def given_logits(self) -> Tensor:
        """The logits in the order in which the user gave the nodes. Shape: ``(N, C)``."""
        return as_given(self.data, self.logits)

    @cached_property
    def probabilities(self) -> Tensor:
        """The probability of each class. Shape: ``(N, C)``."""
        return self.task.scores(self.logits)

    @cached_property
    def predictions(self) -> Tensor:
        """The predicted class of each node. Shape: ``(N,)``."""
        return self.task.predict(self.logits)

    @cached_property
    def predicted_names(self) -> list[str]:
        """The name of each node's predicted class."""
        return [self.facts.class_names[c] for c in self.predictions.tolist()]

    @torch.no_grad()
    def logits_of(self, model: Callable[..., Tensor]) -> Tensor:
        """Returns the logits of all nodes, from the model or a variant of it with the same
        arguments. Shape: ``(N, C)``."""
        self.model.eval()
        return self.steps.predict(model).cpu()

    @cached_property
    def has_attention(self) -> bool:
        """Whether the model attends to nodes."""
        return has_attention(self.model)

    def weights(self, nodes: Tensor) -> Tensor:
        """Returns the :func:`~dgt.explain.key_weights` of some nodes. Shape: ``(Q, N)``."""
        name = self.config.model.model
        inputs = self.steps.inputs_of(nodes)
        return model_weights(self.model, name, inputs, self.data.num_nodes, nodes)

    def explain(self, node: int | str, top: int = 20) -> Explanation:
        """See :meth:`dgt.NodeClassifier.explain`."""
        require_classes(self.facts, "be explained")
        if not isinstance(top, Integral) or isinstance(top, bool) or top < 1:
            raise InputError(f"top: got {top!r}, expected an integer of at least 1")
        query = find_node(node, self.data, self.ids)
        weights = self.weights(torch.tensor([query]))
        return explain(weights[0], query, top, self.data, self.ids, self.predicted_names)

    @torch.no_grad()
    def representations(self) -> Tensor:
        """Returns the input of the model's last layer, on the CPU; of an ensemble, those of all
        members side by side. Shape: ``(N, C')``.

        If this layer takes a sparse matrix, as in SGC, the logits are returned.
        """
        members = members_of(self.model)
        found = [z for z in map(self._representations, members) if z is not None]
        return torch.cat(found, dim=1) if len(found) == len(members) else self.logits

    def _representations(self, network: nn.Module) -> Tensor | None:
        called: list[nn.Module] = []
        self._watch(network, list(network.modules()), lambda module, z: called.append(module))
        if not called:
            return None
        pieces: list[Tensor] = []
        # The inputs of all other layers would take too much memory.
        self._watch(network, [called[-1]], lambda module, z: pieces.append(z.cpu()))
        z = torch.cat(pieces)
        return z if len(z) == self.data.num_nodes else None

    def _watch(
        self,
        network: nn.Module,
        modules: list[nn.Module],
        note: Callable[[nn.Module, Tensor], None],
    ) -> None:
        """Calls ``note`` with the dense inputs of some modules of a network in a pass over all
        nodes."""

        def hook(module: nn.Module, given: tuple[Any, ...]) -> None:
            if given and isinstance(z := given[0], Tensor) and z.layout == torch.strided:
                note(module, z)

        handles = [module.register_forward_pre_hook(hook) for module in modules]
        try:
            self.logits_of(network)
        finally:
            for handle in handles:
                handle.remove()


def require_classes(facts: Facts, use: str) -> None:
    """Raises an error that only classes can ``use``, unless the model predicts classes."""
    if facts.task != "classification":
        raise InputError(f"the model predicts {facts.task}; only classes can {use}")
