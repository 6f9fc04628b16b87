"""The file of a trained model: its weights, and facts about the training graph."""

import json
import logging
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt import __version__
from dgt.config import METRICS
from dgt.config.documents import fields_of, parse_json, require, shown
from dgt.data.labels import is_labeled
from dgt.data.recipe import Recipe
from dgt.data.splits import PARTS
from dgt.data.targets import TaskKind
from dgt.encodings.encoding import CarriesOver
from dgt.errors import InputError
from dgt.runs.identity import GraphIdentity, node_ids
from dgt.storage.fingerprint import fingerprint
from dgt.storage.tensors import read_tensors, require_finite, write_tensors

FORMAT = 1
# The tensors of a model file that are not weights.
NODE_KEYS = "graph.node_keys"
SPLITS = "graph.splits"

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
    edges: str | None = None
    """Fingerprint of the edges. None in some older files."""
    num_nodes: int | None = None
    """Number of nodes. None in some older files."""
    node_keys: Tensor | None = field(default=None, compare=False, repr=False)
    """See :class:`~dgt.runs.identity.GraphIdentity`."""
    splits: Tensor | None = field(default=None, compare=False, repr=False)
    """For each node, 1 plus its part of the split in ``PARTS``, or 0, uint8. None in older files.
    Shape: ``(N,)``."""

    @property
    def graph(self) -> GraphIdentity | None:
        """The training graph. None in older files."""
        if self.edges is None or self.num_nodes is None:
            return None
        return GraphIdentity(self.num_nodes, self.edges, self.node_keys)

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
        for name in ("in_channels", "class_names", "feature_names", "recipe", "num_nodes", "edges"):
            before, now = getattr(self, name), getattr(other, name)
            if before is not None and before != now:
                raise InputError(
                    f"{place}: cannot resume: the graph is not the one that the run was started "
                    f"with ({name} differs)"
                )

    def require_columns(self, data: Data, encoding: Tensor | None) -> None:
        """Raises an error if the encoding of a graph has another number of columns."""
        columns = 0 if encoding is None else encoding.size(1)
        if columns != self.encoding_columns:
            raise InputError(
                f"{data.name}: its encoding has {columns} columns, but the model was trained with "
                f"{self.encoding_columns}"
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


def write_model(path: Path, weights: dict[str, Tensor], facts: Facts) -> None:
    """Writes a model to a safetensors file, with the facts as metadata."""
    given = {NODE_KEYS: facts.node_keys, SPLITS: facts.splits}
    stored = asdict(replace(facts, node_keys=None, splits=None))
    del stored["node_keys"], stored["splits"]
    metadata = {"format": FORMAT, "dgt_version": __version__, **stored}
    tensors = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
    tensors |= {name: value for name, value in given.items() if value is not None}
    write_tensors(path, tensors, {"dgt": json.dumps(metadata)})


def read_model(path: Path) -> tuple[dict[str, Tensor], Facts]:
    """Reads a model that was written by :func:`write_model`."""
    if not path.is_file():
        raise InputError(f"{path}: no such file, expected a trained model")
    tensors, metadata = read_tensors(path)
    place = f"{path}: metadata"
    if "dgt" not in metadata:
        raise InputError(f"{path}: a safetensors file, but not a model of dgt")
    facts = parse_json(metadata["dgt"], place)
    require(facts, {"format": int, "dgt_version": str}, place)
    version = facts.pop("format")
    del facts["dgt_version"]
    if version != FORMAT:
        raise InputError(f"{path}: has format {version}, but this version of dgt reads {FORMAT}")
    arrays = {"node_keys": tensors.pop(NODE_KEYS, None), "splits": tensors.pop(SPLITS, None)}
    found = Facts(**{**fields_of(Facts, facts, place), **arrays})
    _check(found, sum(value.numel() for value in tensors.values()), place)
    if found.recipe is not None:
        Recipe.stored(found.recipe, found.in_channels, place)
    require_finite(path, tensors)
    return tensors, found


def _check(facts: Facts, weights: int, place: str) -> None:
    """Raises an error if facts contradict each other.

    Args:
        facts: The facts.
        weights: Number of weights in the file. There are at least as many as inputs or classes.
        place: Name of the source in error messages.
    """

    def require(met: bool, name: str, expected: str) -> None:
        if not met:
            raise InputError(f"{place}: {name}: got {shown(getattr(facts, name))}, {expected}")

    names, keys = facts.class_names, facts.node_keys
    most = f"expected at most the number of weights, {weights}"
    require(1 <= facts.in_channels <= weights, "in_channels", most)
    require(0 <= (facts.encoding_channels or 0) <= weights, "encoding_channels", most)
    require(0 <= (facts.num_nodes or 0) < 2**40, "num_nodes", "expected a number of nodes")
    fewest = 0 if facts.task == "regression" else 1
    distinct = fewest <= len(names) == len(set(names)) <= weights
    require(distinct, "class_names", "expected distinct names")
    numbers = len(facts.classes) == len(names) and all(abs(c) < 2**63 for c in facts.classes)
    require(numbers, "classes", f"expected {len(names)} integers of 64 bits")
    features = facts.feature_names is None or len(facts.feature_names) == facts.in_channels
    require(features, "feature_names", f"expected {facts.in_channels} names")
    require(len(facts.anchors or []) <= weights, "anchors", most)
    two = facts.positive is None or (len(names) == 2 and facts.positive in (0, 1))
    require(two, "positive", "expected one of two classes")
    require(0 <= (facts.threshold or 0) <= 1, "threshold", "expected a probability")
    if facts.metric is not None:
        METRICS.check(facts.metric, f"{place}: metric")
    for name, value, kind in ((NODE_KEYS, keys, torch.int64), (SPLITS, facts.splits, torch.uint8)):
        if value is None:
            continue
        nodes = value.numel() if facts.num_nodes is None else facts.num_nodes  # in older files
        if value.dtype != kind or value.shape != (nodes,):
            raise InputError(f"{place}: {name}: expected {kind}, one per node")
    if facts.splits is not None and bool((facts.splits > len(PARTS)).any()):
        raise InputError(f"{place}: {SPLITS}: expected numbers up to {len(PARTS)}")
