"""What a model stores about the graph that it was trained on."""

import logging
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.direction import require_direction
from dgt.data.labels import is_labeled, label_columns
from dgt.data.splits import PARTS
from dgt.data.targets import TaskKind
from dgt.encodings.encoding import CarriesOver
from dgt.errors import InputError
from dgt.runs.identity import GraphIdentity, node_ids
from dgt.storage.fingerprint import fingerprint

CARRY_OVER = (
    "train a model on this graph, or train with an encoding that carries over, such as "
    "--encoding none"
)

log = logging.getLogger("dgt")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a model stores about the graph that it was trained on."""

    in_channels: int
    """Number of features."""
    class_names: list[str]
    """Names of the classes or labels."""
    classes: list[int]
    """Value of each class in the user's ``y``."""
    task: TaskKind = "classification"
    mean: float = 0.0
    """For regression, the mean of the numbers of the training nodes."""
    scale: float = 1.0
    """For regression, the standard deviation of the numbers of the training nodes."""
    metric: str | None = None
    """Name of the metric that selected the best epoch. None in older files."""
    positive: int | None = None
    """The positive one of two classes."""
    threshold: float | None = None
    """Probability from which on the positive class is predicted, if it was chosen."""
    feature_names: list[str] | None = None
    recipe: list[dict[str, Any]] | None = None
    """The columns of a :class:`~dgt.data.recipe.Recipe`. None: the features were no table, or the
    file is an older one."""
    anchors: list[int | str] | None = None
    """Ids of the anchors, one per column of the Katz encoding."""
    encoding_channels: int | None = None
    """Number of columns of the positional encoding. None in older files: one per anchor."""
    encoding_widths: list[int] | None = None
    """Number of columns of each positional encoding, if there are several."""
    edges: str | None = None
    """Fingerprint of the edges. None in some older files."""
    directed_edges: str | None = None
    """Fingerprint of the directed edges, if the model's inputs depend on them."""
    num_nodes: int | None = None
    """Number of nodes. None in some older files."""
    node_keys: Tensor | None = field(default=None, compare=False, repr=False)
    """See :class:`~dgt.runs.identity.GraphIdentity`."""
    splits: Tensor | None = field(default=None, compare=False, repr=False)
    """For each node, 1 plus its part of the split in ``PARTS``, or 0, uint8. None in older files.
    Shape: ``(N,)``."""

    known: Tensor | None = field(default=None, compare=False, repr=False)
    """The labels of training nodes that the model reads, in the form of the task, and no label for
    all others; None if it reads none."""

    @property
    def graph(self) -> GraphIdentity | None:
        """The training graph. None in older files."""
        if self.edges is None or self.num_nodes is None:
            return None
        return GraphIdentity(self.num_nodes, self.edges, self.node_keys, self.directed_edges)

    @property
    def encoding_columns(self) -> int:
        """Number of columns of the positional encoding, or 0 if there is none."""
        if self.encoding_channels is None:
            return len(self.anchors or [])
        return self.encoding_channels

    def require_same(self, other: "Facts", place: Path) -> None:
        """Raises an error if these are not the facts of a run that is resumed.

        A complete run of an older version, whose features were not made by a recipe, is accepted.
        """
        if self.recipe is None and other.recipe is not None:
            return
        graph = ("num_nodes", "edges", "directed_edges")
        for name in ("in_channels", "class_names", "feature_names", "recipe", *graph):
            before, now = getattr(self, name), getattr(other, name)
            if before is not None and before != now:
                raise InputError(
                    f"{place}: cannot resume: the graph is not the one that the run was started "
                    f"with ({name} differs)"
                )

    @property
    def encoding_parts(self) -> tuple[int, ...]:
        """Number of columns of each positional encoding."""
        return tuple(self.encoding_widths or (self.encoding_columns,))

    def encoding_sizes(self, several: bool) -> int | tuple[int, ...]:
        """Returns the number of columns of the positional encoding or, for a model that tells
        several ones apart, of each of them."""
        return self.encoding_parts if several else self.encoding_columns

    def require_columns(self, data: Data, widths: tuple[int, ...]) -> None:
        """Raises an error if the encodings of a graph have other numbers of columns."""
        got, expected = widths or (0,), self.encoding_parts
        if got != expected:
            raise InputError(
                f"{data.name}: its encoding has {_numbers(got)} columns, but the model was trained "
                f"with {_numbers(expected)}"
            )

    def require_features(self, data: Data) -> None:
        """Raises an error if a graph has other features than the training graph."""
        place, count = data.name, data.x.size(1)
        if count != self.in_channels:
            raise InputError(
                f"{place}: has {count} features, but the model was trained with {self.in_channels}"
            )
        names = data.get("feature_names")
        if self.feature_names is not None and names is not None and names != self.feature_names:
            pairs = zip(names, self.feature_names, strict=True)
            column, (got, expected) = next((i, p) for i, p in enumerate(pairs) if p[0] != p[1])
            raise InputError(
                f"{place}: feature {column} is {got!r}, but the model was trained with {expected!r}"
            )

    def require_graph(self, data: Data, carries_over: CarriesOver) -> None:
        """Raises an error if the model's inputs have another meaning on this graph.

        Files of version 0.1 hold less about the training graph. For them, a graph that cannot be
        checked is accepted with a warning.

        Args:
            data: The graph.
            carries_over: See :attr:`dgt.encodings.Encoding.carries_over`.
        """
        if self.directed_edges is not None:
            require_direction(data, "the model")
        if carries_over == "always":
            return
        graph = self.graph
        if graph is not None:
            if carries_over == "edges" and not graph.is_same(data):
                raise InputError(
                    f"{data.name}: not the graph that the model was trained on (the same node ids "
                    "in the same order, and the same edges), and the positional encoding of the "
                    f"model is only valid for that graph; {CARRY_OVER}"
                )
            if carries_over == "anchors" and not graph.is_part_of(data):
                raise InputError(
                    f"{data.name}: does not contain the graph that the model was trained on (all "
                    "of its node ids, and between them the same edges), and the Katz encoding of "
                    f"the model is only valid for graphs that do; {CARRY_OVER}"
                )
        elif self.edges is None:
            log.warning(
                "%s: cannot be compared with the graph that the model was trained on, since the "
                "model was saved by an older version of dgt; on another graph, its predictions are "
                "wrong",
                data.name,
            )
        elif fingerprint([data.edge_index]) != self.edges:
            raise InputError(
                f"{data.name}: not the graph that the model was trained on, and the positional "
                f"encoding of the model is only valid for that graph; {CARRY_OVER}"
            )

    def parts(self, data: Data | None) -> list[str | None]:
        """Returns the part of the split that each node was in during training, or None.

        Args:
            data: A graph (default: the training graph). If it does not contain the training graph,
                its nodes were in no part.
        """
        own = [(None, *PARTS)[part] for part in ([] if self.splits is None else self.splits)]
        if data is None:
            return own
        names: list[str | None] = [None] * data.num_nodes
        graph = self.graph
        if own and graph is not None and graph.is_part_of(data):
            for node, part in zip(graph.find(data).tolist(), own, strict=True):
                names[node] = part
        return names

    def known_columns(self, data: Data | None = None) -> Tensor | None:
        """Returns the labels that the model reads, see :func:`~dgt.data.labels.label_columns`; None
        if it reads none.

        Args:
            data: A graph that contains the training graph (default: the training graph).
        """
        if self.known is None:
            return None
        y = self.known
        if data is not None:
            graph = self.graph
            if graph is None or not graph.is_part_of(data):
                raise InputError(
                    f"{data.name}: does not contain the graph that the model was trained on (all "
                    "of its node ids, and between them the same edges), and the model reads the "
                    "labels of its training nodes; train a model on this graph, or with --labels "
                    "none"
                )
            y = y[:1].new_full((data.num_nodes, *y.shape[1:]), -1)
            if y.is_floating_point():
                y.fill_(torch.nan)
            y[torch.from_numpy(graph.find(data))] = self.known
        return label_columns(y, len(self.class_names), self.mean, self.scale)

    def labels(self, data: Data) -> Tensor:
        """Returns the labels of a graph, renumbered to the classes or labels of the model."""
        if self.task == "regression":
            return data.y
        known = {name: c for c, name in enumerate(self.class_names)}
        for name in data.class_names:
            if name not in known:
                raise InputError(f"{data.name}: class {name!r} was not in the training graph")
        renumber = torch.tensor([*(known[name] for name in data.class_names), -1])
        if self.task == "classification":
            return renumber[data.y]  # label -1 selects the last entry
        y = torch.zeros(data.num_nodes, len(known), dtype=torch.int64)
        y[:, renumber[:-1]] = data.y
        y[~is_labeled(data.y)] = -1
        return y

    def find_anchors(self, data: Data) -> Tensor | None:
        """Finds the anchors in a graph.

        Returns:
            Node indices, int64, -1 for anchors that the graph lacks. Shape: ``(N',)``.
        """
        if self.anchors is None:
            return None
        # Whether ids are read as numbers or as text depends on the other ids in the file.
        nodes = {str(name): node for node, name in enumerate(node_ids(data))}
        found = torch.tensor([nodes.get(str(name), -1) for name in self.anchors])
        if not bool((found >= 0).any()):
            raise InputError(
                f"{data.name}: shares no node id with the graph that the model was trained on, and "
                f"the Katz encoding needs common nodes; {CARRY_OVER}"
            )
        return found


def _numbers(counts: tuple[int, ...]) -> str:
    return " + ".join(map(str, counts))
