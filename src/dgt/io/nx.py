"""A NetworkX graph to `Data`."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import torch
from torch_geometric.data import Data

from dgt.errors import InputError, nearest
from dgt.io import columns
from dgt.io.folder import from_nodes
from dgt.io.graph import normalise
from dgt.io.tables import Table


def from_networkx(
    graph: Any,
    *,
    label: str = "label",
    split: str = "split",
    features: Sequence[str] | None = None,
    name: str = "graph",
) -> Data:
    """Takes over nodes and edges of a NetworkX graph, and its nodes' attributes.

    Args:
        graph: Any NetworkX graph; directions, weights and parallel edges are dropped.
        label: The attribute with the class; a node without it is unlabelled.
        split: The attribute with train, val or test.
        features: The attributes that are features: numbers, or one that is a list of numbers
            (default: all except :obj:`label` and :obj:`split`).
        name: What error messages and reports call the graph.
    """
    nodes = list(graph.nodes)
    if not nodes:
        raise InputError(f"{name}: empty graph: it has no nodes")
    attributes = [graph.nodes[node] for node in nodes]
    found = list(dict.fromkeys(key for values in attributes for key in values))
    if features is None:
        features = [key for key in found if key not in (label, split)]

    table = Table(name, {}, lambda row: f"node {nodes[row]!r}", typed=True)
    whole = all(type(node) is int for node in nodes)
    _add(table, "id", nodes if whole else [str(node) for node in nodes])
    for key, column in ((label, "label"), (split, "split")):
        if key in found:
            words = [values.get(key) for values in attributes]
            _add(table, column, [None if _missing(w) else str(w) for w in words])
    for key in features:
        if key not in found:
            raise InputError(f"{name}: no node has the attribute {key!r}; {nearest(key, found)}")
        if key in table.columns:
            raise InputError(
                f"{name}: attribute {key!r} cannot be a feature, its name is taken; "
                "rename it, or say with features=[...] which attributes are features"
            )
        _add(table, str(key), [_plain(values.get(key)) for values in attributes])

    data = from_nodes(table)
    data.name = name
    _, data.node_ids = columns.ids(table)
    number = {node: row for row, node in enumerate(nodes)}
    edges = [(number[u], number[v]) for u, v in graph.edges()]
    data.edge_index = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).t()
    return normalise(data)


def _add(table: Table, column: str, values: list[Any]) -> None:
    try:
        table.columns[column] = pa.chunked_array([pa.array(values)])
    except (pa.ArrowException, TypeError, OverflowError):
        expected = "a number in every node, or a list of numbers in every node"
        row = next((r for r, v in enumerate(values) if not isinstance(v, int | float)), 0)
        raise table.error(row, column, values[row], expected) from None


def _plain(value: Any) -> Any:
    """Tensors, arrays and their scalars as Python's own lists and numbers."""
    return value.tolist() if hasattr(value, "tolist") else value


def _missing(value: Any) -> bool:
    return value is None or value == "" or value != value
