"""A trained model as a file: the weights, and what the model knows of its graph."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor
from torch_geometric.data import Data

from dgt import __version__
from dgt.checkpoint import fingerprint, write_tensors
from dgt.errors import InputError

FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What a model knows of the graph that it was trained on."""

    in_channels: int
    """Number of features."""
    class_names: list[str]
    classes: list[int]
    """The classes' numbers in the user's ``y``."""
    feature_names: list[str] | None = None
    anchors: list[int | str] | None = None
    """Ids of the nodes that the columns of the Katz encoding stand for."""
    encoding_channels: int | None = None
    """Columns of the positional encoding. Unset, in older files: one for each anchor."""
    edges: str | None = None
    """Fingerprint of the graph's edges, where the encoding holds for this graph alone."""

    def require_features(self, data: Data) -> None:
        """Refuses a graph with other features than those of training."""
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

    def require_edges(self, data: Data) -> None:
        """Refuses another graph than that of training where the encoding holds for it alone."""
        if self.edges is not None and fingerprint([data.edge_index]) != self.edges:
            raise InputError(
                f"{data.name}: not the graph that the model was trained on, and Node2Vec vectors "
                "hold for that graph alone; train with another encoding for other graphs"
            )

    def find_anchors(self, data: Data) -> Tensor | None:
        """The anchors' nodes in a graph, int64 [N'], -1 for those that it does not have."""
        if self.anchors is None:
            return None
        # Whether ids are read as numbers or as text depends on the other ids in the file.
        nodes = {str(name): node for node, name in enumerate(node_ids(data))}
        found = torch.tensor([nodes.get(str(name), -1) for name in self.anchors])
        if not bool((found >= 0).any()):
            raise InputError(
                f"{data.name}: shares no node id with the graph that the model was trained on, and "
                "its Katz encoding needs some; train with encoding none for graphs of other nodes"
            )
        return found


def node_ids(data: Data) -> Sequence[int | str]:
    """The user's own ids, or 0 to N - 1."""
    ids = data.get("node_ids")
    return range(data.num_nodes) if ids is None else ids


def write_model(path: Path, weights: dict[str, Tensor], facts: Facts) -> None:
    """Writes a safetensors file with the facts in its metadata."""
    metadata = {"format": FORMAT, "dgt_version": __version__, **asdict(facts)}
    tensors = {name: value.detach().cpu().contiguous() for name, value in weights.items()}
    write_tensors(path, tensors, {"dgt": json.dumps(metadata)})


def read_model(path: Path) -> tuple[dict[str, Tensor], Facts]:
    """The reverse of :func:`write_model`."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected a trained model")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise InputError(f"{path}: truncated, or not a safetensors file: {error}") from None
    try:
        facts = json.loads(metadata["dgt"])
        version = facts.pop("format")
        facts.pop("dgt_version")
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError):
        raise InputError(f"{path}: a safetensors file, but not a model of dgt") from None
    if version != FORMAT:
        raise InputError(f"{path}: has format {version}, but this version of dgt reads {FORMAT}")
    try:
        return tensors, Facts(**facts)
    except TypeError:
        raise InputError(f"{path}: a safetensors file, but not a model of dgt") from None
