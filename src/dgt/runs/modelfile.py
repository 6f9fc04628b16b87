"""The file of a trained model: its weights, and facts about the training graph."""

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor

from dgt import __version__
from dgt.config import METRICS
from dgt.config.documents import fields_of, parse_json, require, shown
from dgt.data.labels import is_labeled
from dgt.data.recipe import Recipe
from dgt.data.splits import PARTS
from dgt.errors import InputError
from dgt.runs.facts import Facts
from dgt.storage.tensors import read_tensors, require_finite, write_tensors

FORMAT = 1
# The tensors of a model file that are not weights.
NODE_KEYS = "graph.node_keys"
SPLITS = "graph.splits"
KNOWN = "graph.known_labels"
# The number of the training nodes in the splits.
TRAIN = 1 + PARTS.index("train")


def write_model(path: Path, weights: dict[str, Tensor], facts: Facts) -> None:
    """Writes a model to a safetensors file, with the facts as metadata."""
    given = {NODE_KEYS: facts.node_keys, SPLITS: facts.splits, KNOWN: facts.known}
    stored = asdict(replace(facts, node_keys=None, splits=None, known=None))
    del stored["node_keys"], stored["splits"], stored["known"]
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
    arrays = {
        "node_keys": tensors.pop(NODE_KEYS, None),
        "splits": tensors.pop(SPLITS, None),
        "known": tensors.pop(KNOWN, None),
    }
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
    widths = facts.encoding_widths or []
    added_up = all(w >= 0 for w in widths) and sum(widths) in (0, facts.encoding_channels)
    require(added_up, "encoding_widths", "expected the columns of each encoding")
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
    if facts.known is not None:
        _check_known(facts, facts.known, place)
    if facts.splits is not None and bool((facts.splits > len(PARTS)).any()):
        raise InputError(f"{place}: {SPLITS}: expected numbers up to {len(PARTS)}")


def _check_known(facts: Facts, known: Tensor, place: str) -> None:
    """Raises an error unless known labels have the form of the task."""
    classes = len(facts.class_names)
    shape, dtype, most = {
        "classification": ((facts.num_nodes,), torch.int64, classes - 1),
        "multilabel": ((facts.num_nodes, classes), torch.int64, 1),
        "regression": ((facts.num_nodes,), torch.float64, math.inf),
    }[facts.task]
    if known.dtype != dtype or known.shape != shape:
        raise InputError(f"{place}: {KNOWN}: expected {dtype}, one label per node")
    if facts.splits is None or bool((is_labeled(known) & (facts.splits != TRAIN)).any()):
        raise InputError(f"{place}: {KNOWN}: expected labels of training nodes only")
    found = known[is_labeled(known)]
    numbers = facts.task == "regression"
    if not bool(found.isfinite().all() if numbers else ((found >= 0) & (found <= most)).all()):
        raise InputError(f"{place}: {KNOWN}: expected labels of the model")
