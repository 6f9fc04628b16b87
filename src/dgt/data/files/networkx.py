"""Graphs from NetworkX."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import torch
from torch_geometric.data import Data

from dgt.data.direction import DIRECTED
from dgt.data.files import columns
from dgt.data.files.folder import from_nodes
from dgt.data.files.frame import Frame
from dgt.data.files.normalization import normalize
from dgt.errors import InputError, nearest


def from_networkx(
    graph: Any,
    *,
    label: str = "label",
    split: str = "split",
    features: Sequence[str] | None = None,
    name: str = "graph",
) -> Data:
    """Converts a NetworkX graph with node attributes.

    Args:
        graph: NetworkX graph; weights and parallel edges are dropped. The edges of a ``DiGraph``
            are directed.
        label: Node attribute with the class; nodes without it are unlabeled.
        split: Node attribute with train, val or test.
        features: Node attributes to use as features: numbers, or a single attribute with lists of
            numbers (default: all except :obj:`label` and :obj:`split`).
        name: Name of the graph in error messages and reports.
    """
    nodes = list(graph.nodes)
    if not nodes:
        raise InputError(f"{name}: empty graph: no nodes")
    attributes = [graph.nodes[node] for node in nodes]
    found = list(dict.fromkeys(key for values in attributes for key in values))
    if features is None:
        features = [key for key in found if key not in (label, split)]

    frame = Frame(name, {}, lambda row: f"node {nodes[row]!r}", typed=True)
    whole = all(type(node) is int for node in nodes)
    _add(frame, "id", nodes if whole else [str(node) for node in nodes])
    for key, column in ((label, "label"), (split, "split")):
        if key in found:
            words = [values.get(key) for values in attributes]
            _add(frame, column, [None if _missing(w) else str(w) for w in words])
    for key in features:
        if key not in found:
            raise InputError(f"{name}: no node has the attribute {key!r}; {nearest(key, found)}")
        if key in frame.columns:
            raise InputError(
                f"{name}: attribute {key!r} cannot be a feature because the name is reserved; "
                "rename it, or pass the features as features=[...]"
            )
        _add(frame, str(key), [_plain(values.get(key)) for values in attributes])

    roles: dict[str, str] = {
        role: role for role in ("id", "label", "split") if role in frame.columns
    }
    data = from_nodes(frame, roles)
    data.name = name
    _, data.node_ids = columns.ids(frame)
    number = {node: row for row, node in enumerate(nodes)}
    edges = [(number[u], number[v]) for u, v in graph.edges()]
    data.edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t()
    if graph.is_directed():
        data[DIRECTED] = data.edge_index
    return normalize(data, directed=graph.is_directed())


def _add(frame: Frame, column: str, values: list[Any]) -> None:
    try:
        frame.columns[column] = pa.chunked_array([pa.array(values)])
    except (pa.ArrowException, TypeError, OverflowError):
        expected = "a number for every node, or a list of numbers for every node"
        row = next((r for r, v in enumerate(values) if not isinstance(v, int | float)), 0)
        raise frame.error(row, column, values[row], expected) from None


def _plain(value: Any) -> Any:
    """Converts tensors and arrays to Python lists and numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


def _missing(value: Any) -> bool:
    return value is None or value == "" or value != value
