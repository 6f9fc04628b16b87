"""Checks a graph and converts it to the form that the rest of the library relies on."""

import logging
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import METRICS
from dgt.data.direction import DIRECTED, DIRECTED_WEIGHTS, is_directed
from dgt.data.files.edge_checks import add_direction, normalized_edges, normalized_weights
from dgt.data.magnitude import LARGEST, magnitude
from dgt.data.recipe.table import has_table
from dgt.data.splits import PARTS
from dgt.data.tensors import plain
from dgt.errors import InputError
from dgt.system import machine

log = logging.getLogger("dgt")

MOST_NODES = 2**31 - 1  # node sequences are int32


def normalize(data: Data, place: str | None = None, directed: bool | None = None) -> Data:
    """Checks a graph and normalizes it.

    Edges become undirected, without self-loops and duplicates. Directed edges are kept besides, see
    :mod:`dgt.data.direction`. Features become float32; a graph
    without features gets one constant feature. Labels become classes 0, 1, ... with their original
    values as names, and -1 for unlabeled nodes. A table of columns is kept as it is, see
    :mod:`dgt.data.recipe`. Other tensors with a row for each node are kept,
    for criteria and encodings of the user's own; all other attributes are dropped.

    Args:
        data: Graph with ``edge_index`` and optionally ``x``, ``y``, ``train_mask``, ``val_mask``,
            ``test_mask``, ``name``, ``node_ids``, ``class_names``, ``feature_names``, and
            ``metric``, the name of the metric that the graph is compared by.
        place: Name of the graph in error messages (default: ``data.name``).
        directed: Whether the edges are directed (default: if ``directed_edge_index`` is given, or
            if some edges are listed in both directions and others in one).

    Returns:
        A new graph; :obj:`data` is not modified.
    """
    if not isinstance(data, Data):
        raise InputError(f"{place or 'graph'}: got {type(data).__name__}, expected a PyG Data")
    name = data.get("name")
    place = place or (str(name) if isinstance(name, str) and name else "graph")
    num_nodes = _num_nodes(data, place)
    if num_nodes == 0:
        raise InputError(f"{place}: empty graph: no nodes")

    out = Data()
    if has_table(data):
        out.table = data.table
    if not has_table(data) or data.get("x") is not None:
        out.x = _features(data, num_nodes, place)
    out.edge_index = normalized_edges(data, num_nodes, place)
    if data.get("edge_weights") is not None:
        out.edge_weights = normalized_weights(data, out.edge_index, num_nodes, place)
        out.edge_names = [str(each) for each in data.get("edge_names") or ("edges",)]
    if directed is not False:
        add_direction(out, data, num_nodes, place, directed)
    out.y, out.class_names = _labels(data, num_nodes, place)
    for key, mask in _masks(data, num_nodes, place).items():
        out[key] = mask
    out.name = name if isinstance(name, str) and name else place
    if data.get("metric") is not None:
        METRICS.check(data.metric, f"{place}: metric")
        out.metric = data.metric
    if data.get("node_ids") is not None:
        out.node_ids = _names(data.node_ids, "node_ids", num_nodes, place)
        if len(set(map(str, out.node_ids))) < num_nodes:
            raise InputError(f"{place}: node_ids: got duplicate ids, expected unique ids")
    if data.get("feature_names") is not None and "x" in out:
        out.feature_names = _names(data.feature_names, "feature_names", out.x.size(1), place)
    for key, value in data.to_dict().items():
        if key not in (*out.keys(), DIRECTED, DIRECTED_WEIGHTS) and _is_per_node(value, num_nodes):
            out[key] = value
    if "x" not in out:
        out.num_nodes = num_nodes
    return out


def _is_per_node(value: Any, num_nodes: int) -> bool:
    return isinstance(value, Tensor) and not value.is_nested and value.shape[:1] == (num_nodes,)


def info(data: Data) -> dict[str, int | float | None]:
    """Returns the number of nodes, undirected edges, features, classes and labeled nodes, and
    whether the edges are known to be directed.

    Also returns the edge homophily: the fraction of edges between labeled nodes that connect nodes
    of the same class.
    """
    y = data.y[data.edge_index]  # (2, 2E)
    labeled = (y >= 0).all(dim=0)
    same = (y[0] == y[1]) & labeled
    return {
        "nodes": data.num_nodes,
        "edges": data.edge_index.size(1) // 2,
        "directed": is_directed(data),
        "features": len(data.table.features()) if data.get("x") is None else data.x.size(1),
        "classes": len(data.class_names),
        "homophily": float(same.sum() / labeled.sum()) if bool(labeled.any()) else None,
        "labelled": int((data.y >= 0).sum()),
    }


def _num_nodes(data: Data, place: str) -> int:
    for key in ("x", "y", *(f"{part}_mask" for part in PARTS)):
        value = data.get(key)
        if isinstance(value, Tensor) and value.is_nested:
            continue  # has no shape; refused later
        shape: Any = getattr(value, "shape", ())
        if not shape and isinstance(value, list | tuple):
            return len(value)
        if len(shape) > 0:
            return int(shape[0])
    if data.to_dict().get("num_nodes") is not None:
        return node_count(data.to_dict()["num_nodes"], place)
    # The largest index in edge_index would miss isolated nodes.
    raise InputError(f"{place}: unknown number of nodes, expected x, y or num_nodes")


def node_count(value: Any, place: str) -> int:
    """Checks a number of nodes given by the user."""
    number = value.item() if hasattr(value, "item") and math.prod(value.shape) == 1 else value
    whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if not whole or not 0 <= number <= MOST_NODES:
        shown = repr(number) if isinstance(number, int | float | str) else type(number).__name__
        raise InputError(
            f"{place}: num_nodes: got {shown}, expected an integer from 1 to {MOST_NODES}"
        )
    return int(number)


def _features(data: Data, num_nodes: int, place: str) -> Tensor:
    if data.get("x") is None:
        return _constant(num_nodes, place)
    given = plain(data.x, f"{place}: x", sparse=True)
    if given.dim() != 2 or given.size(0) != num_nodes:
        raise InputError(f"{place}: x: got shape {tuple(given.shape)}, expected ({num_nodes}, F)")
    if given.size(1) == 0:
        return _constant(num_nodes, place)
    x = given.to(torch.float32)
    bad = ~(x.abs() <= LARGEST)  # also true for NaN
    if bool(bad.any()):
        node, column = bad.nonzero()[0].tolist()
        value = given[node, column].item()
        raise InputError(
            f"{place}: x: node {node}, feature {column}: got {value}, {magnitude(value)}"
        )
    return x.contiguous()


def _constant(num_nodes: int, place: str) -> Tensor:
    machine.require(4 * num_nodes, f"{place}: a graph of {num_nodes:,} nodes")
    log.warning("%s: no features; using one constant feature", place)
    return torch.ones(num_nodes, 1)


def _labels(data: Data, num_nodes: int, place: str) -> tuple[Tensor, list[str]]:
    names = data.get("class_names")
    if names is not None:
        names = [str(name) for name in _names(names, "class_names", None, place)]
    if data.get("y") is None:
        return torch.full((num_nodes,), -1), names or []
    y = plain(data.y, f"{place}: y")
    if y.dim() == 2 and y.size(1) == 1:
        y = y[:, 0]
    if y.shape != (num_nodes,):
        raise InputError(
            f"{place}: y: got shape {tuple(y.shape)}, expected ({num_nodes},): one class per node"
        )
    if y.is_floating_point():
        y = y.masked_fill(y.isnan(), -1)
    bad = (y < -1) | (y != y.to(torch.int64))
    if bool(bad.any()):
        node = int(bad.nonzero()[0])
        raise InputError(
            f"{place}: y: node {node}: got {y[node].item()}, "
            "expected a class 0, 1, ..., or -1 for unlabeled"
        )
    y = y.to(torch.int64)
    classes = y[y >= 0].unique()
    if names is None:
        known = y >= 0
        y = torch.where(known, torch.searchsorted(classes, y), y)
        return y, [str(c) for c in classes.tolist()]
    if len(classes) and int(classes[-1]) >= len(names):
        raise InputError(
            f"{place}: class_names: got {len(names)} names, but y has class {int(classes[-1])}"
        )
    if len(set(names)) < len(names):
        raise InputError(f"{place}: class_names: got duplicate names, expected unique names")
    return y.clone(), names


def _masks(data: Data, num_nodes: int, place: str) -> dict[str, Tensor]:
    masks = {}
    for key in (f"{part}_mask" for part in PARTS):
        if data.get(key) is None:
            continue
        mask = plain(data[key], f"{place}: {key}")
        if mask.dim() not in (1, 2) or mask.size(0) != num_nodes or mask.size(-1) == 0:
            raise InputError(
                f"{place}: {key}: got shape {tuple(mask.shape)}, "
                f"expected ({num_nodes},) or ({num_nodes}, S)"
            )
        if mask.dtype != torch.bool and not bool(((mask == 0) | (mask == 1)).all()):
            raise InputError(f"{place}: {key}: expected only boolean values, or 0 and 1")
        mask = mask.to(torch.bool)
        masks[key] = (mask[:, 0] if mask.dim() == 2 and mask.size(1) == 1 else mask).clone()
    if len({mask.shape for mask in masks.values()}) > 1:
        shapes = ", ".join(f"{key} {tuple(mask.shape)}" for key, mask in masks.items())
        raise InputError(f"{place}: masks: got different shapes: {shapes}")
    return masks


def _names(values: Any, key: str, count: int | None, place: str) -> list[Any]:
    """Returns ids or names as a list of integers and strings.

    Args:
        values: A list, tuple, array or tensor.
        key: Its name in error messages.
        count: How many there must be, if that is known.
        place: Name of the graph in error messages.
    """
    values = values.tolist() if isinstance(values, Tensor | np.ndarray) else values
    if not isinstance(values, list | tuple):
        raise InputError(f"{place}: {key}: got {type(values).__name__}, expected a list")
    if count is not None and len(values) != count:
        raise InputError(f"{place}: {key}: got {len(values)} values, expected {count}")
    return [_name(value, f"{place}: {key}: number {n}") for n, value in enumerate(values)]


def _name(value: Any, place: str) -> int | str:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, str | float | bool):
        return str(value)
    raise InputError(f"{place}: got {value!r}, expected text or an integer")
