"""What a model is trained on: a graph with one split, and the inputs of the model."""

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import Config
from dgt.config.checks import require
from dgt.data.recipe import (
    Recipe,
    from_table,
    require_label,
    require_read_with,
    sorted_by_id,
    warn_given_away,
    without_table,
)
from dgt.data.splits import choose, part_numbers
from dgt.data.targets import normalize_for
from dgt.encodings import choose_anchors
from dgt.models import require_memory
from dgt.prepare import carries_over, prepare, reads_direction, reads_labels
from dgt.runs.facts import Facts
from dgt.runs.identity import GraphIdentity, node_ids
from dgt.system.devices import device_of
from dgt.system.machine import trim
from dgt.system.notes import note_once
from dgt.training import budget, distributed, labels
from dgt.training.batching import Whole
from dgt.training.defaults import follow_graph
from dgt.training.multilabel import MultiLabel
from dgt.training.regression import Regression
from dgt.training.steps import steps_for
from dgt.training.task import Classification, Task, best_threshold


@dataclass
class Problem:
    """A validated graph with one split."""

    config: Config
    data: Data
    splits: str
    """Kind of split: given, published or random."""
    split: int | None
    """Index of the published split, or seed of the random split."""
    anchors: Tensor | None
    facts: Facts
    """What a model stores about the graph."""

    @classmethod
    def of(cls, data: Data, config: Config) -> "Problem":
        """Checks the graph and the settings, chooses the split, and fits the recipe of a table on
        the training nodes."""
        distributed.require_possible(config)
        if isinstance(data, Data):
            require_read_with(data, config.data)
        named = isinstance(data, Data) and data.get("class_names") is not None
        tabular = isinstance(data, Data) and from_table(data)
        given, directed = sorted_by_id(data) if tabular else data, config.data.directed
        data = normalize_for(given, config.train.task, directed)
        del given
        require_label(data)
        masks = data.get("train_mask")
        index = config.train.split_index
        data, splits = choose(data, config.train.splits, index)
        if splits == "published" and masks.dim() == 2 and config.train.split is not None:
            count = masks.size(1)
            require("split", index, index < count, f"below {count}, the number of splits")
        require_memory(config, data.num_nodes)
        recipe = Recipe.fit(data, config.data) if tabular else None
        if recipe is not None:
            warn_given_away(data, recipe)
            recipe.apply(data)
        without_table(data)
        config = follow_graph(config, data)
        directed = reads_direction(config, data)
        if directed:  # so that graphs to predict are read like this one
            config = config.replace(directed=True)
        if device_of(config).type == "cpu":
            queries, classes = int(data.train_mask.sum()), max(len(data.class_names), 1)
            budget.require(config, data.num_nodes, queries, classes, distributed.size())
        anchors = None
        if carries_over(config) == "anchors":
            given = config.encoding
            count = given.anchors, given.anchor_rule, given.katz_order
            anchors = choose_anchors(data.edge_index, data.num_nodes, *count)
        ids, graph = node_ids(data), GraphIdentity.of(data, directed)
        facts = Facts(
            in_channels=data.x.size(1),
            **labels.facts(data, config.train, named),
            feature_names=data.get("feature_names"),
            recipe=None if recipe is None else list(recipe.columns),
            anchors=None if anchors is None else [ids[node] for node in anchors.tolist()],
            edges=graph.edges,
            directed_edges=graph.directed,
            num_nodes=graph.num_nodes,
            node_keys=graph.keys,
            splits=part_numbers(data),
            known=labels.known(data) if reads_labels(config) else None,
        )
        split = {"given": None, "random": index}.get(splits)
        if splits == "published":
            split = index % masks.size(1)
        return cls(config, data, splits, split, anchors, facts)

    @property
    def targets(self) -> tuple[Tensor, Tensor, Tensor]:
        """The labels, and the masks of the train and val nodes."""
        return self.data.y, self.data.train_mask, self.data.val_mask

    def hide_test_labels(self) -> None:
        """Makes the test nodes unlabeled, so that nothing from here on can depend on their
        labels."""
        hidden = torch.nan if self.data.y.is_floating_point() else -1
        y, test = self.data.y.clone(), self.data.test_mask
        y[test] = hidden
        self.data.y = y

    @cached_property
    def rare(self) -> list[int]:
        """Classes with few train and val nodes."""
        return labels.rare(self.data, self.config.train.task)

    def task(self) -> Task:
        """Returns the task, with the weights of the classes in the loss."""
        task = task_of(self.facts)
        if isinstance(task, Classification) and self.config.train.class_weight == "balanced":
            counts = labels.class_counts(self.data.y[self.data.train_mask], task.out_channels)
            task.class_weights = labels.balanced_weights(counts)
        return task

    def choose_threshold(self, task: Task, logits: Tensor) -> None:
        """Chooses the threshold of a trained model on the validation nodes, if a class is rare and
        none is set. Adds it to the task and to :attr:`facts`.

        Args:
            task: The task.
            logits: The logits of all nodes. Shape: ``(N, C)``.
        """
        if not isinstance(task, Classification) or task.name != "binary":
            return
        if self.rare and task.threshold is None:
            val = self.data.val_mask
            task.threshold = best_threshold(task, logits[val], self.data.y[val])
            self.facts = replace(self.facts, threshold=task.threshold)

    def prepare(self, device: torch.device, progress: bool = False) -> Whole:
        """Prepares the inputs of the model, and frees memory that training does not need.

        Adds the number of columns of the encoding to :attr:`facts`.

        Args:
            device: Device of the inputs.
            progress: Show progress on stderr.
        """
        data = self.data
        if self.facts.recipe is not None and distributed.rank() == 0:
            note_once(Recipe(tuple(self.facts.recipe)).summary(data.name))
        inputs = distributed.first_of_machine_first(
            lambda: prepare(
                data, self.config, self.anchors, progress, known=self.facts.known_columns()
            )
        )
        widths = list(inputs.encoding_widths)
        several = widths if len(widths) > 1 else None
        self.facts = replace(self.facts, encoding_channels=sum(widths), encoding_widths=several)
        if self.config.record.batching and distributed.rank() == 0:
            queries, classes = int(data.train_mask.sum()), max(len(data.class_names), 1)
            budget.warn(self.config, inputs, queries, classes, distributed.size(), device)
        steps = steps_for(self.config, inputs, device)
        if distributed.size() > 1:
            # From now on, a process only needs its own rows.
            data.num_nodes, data.x, data.edge_index = data.num_nodes, None, None
            data.directed_edge_index = data.directed_edge_weights = None
        del inputs
        trim(from_now_on=distributed.size() > 1 or self.config.train.chunk_size is not None)
        return steps


def task_of(facts: Facts) -> Task:
    """Returns the task of a model, without the weights of the classes."""
    if facts.task == "regression":
        return Regression(facts.metric or "mae", mean=facts.mean, scale=facts.scale)
    if facts.task == "multilabel":
        return MultiLabel(len(facts.class_names), facts.metric or "f1")
    return Classification(
        len(facts.class_names),
        facts.metric or "accuracy",
        positive=1 if facts.positive is None else facts.positive,
        threshold=facts.threshold,
    )
