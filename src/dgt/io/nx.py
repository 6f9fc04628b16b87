"""A NetworkX graph to `Data`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from torch_geometric.data import Data

from dgt.errors import InputError
from dgt.io.folder import assemble
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
    attributes = [graph.nodes[node] for node in nodes]
    found = list(dict.fromkeys(key for values in attributes for key in values))
    if features is None:
        features = [key for key in found if key not in (label, split)]
    chosen: dict[str, list[Any]] = {}
    for key, column in [(label, "label"), (split, "split"), *((f, str(f)) for f in features)]:
        if column in chosen:
            raise InputError(f"{name}: attribute {key!r} is taken for {column!r} already")
        chosen[column] = [values.get(key) for values in attributes]
        if column in ("label", "split"):
            chosen[column] = [None if _missing(v) else str(v) for v in chosen[column]]
            if key not in found:
                del chosen[column]

    def place(row: int) -> str:
        return f"node {nodes[row]!r}"

    table = Table(name, {}, place, typed=True)
    for column, values in chosen.items():
        try:
            table.columns[column] = pa.chunked_array([pa.array(values)])
        except (pa.ArrowException, TypeError):
            row = next(r for r, v in enumerate(values) if not isinstance(v, int | float))
            raise table.error(row, column, values[row], "a number, or lists everywhere") from None
    ids = nodes if all(type(n) is int or type(n) is str for n in nodes) else [str(n) for n in nodes]
    number = {node: row for row, node in enumerate(nodes)}
    edges = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64)
    return assemble(table, ids, edges.reshape(-1, 2).T, name)


def _missing(value: Any) -> bool:
    return value is None or value == "" or value != value
