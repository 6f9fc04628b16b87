"""Sorts the nodes of a graph by their ids, so that the order of a table's rows does not matter."""

from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.direction import DIRECTED, DIRECTED_WEIGHTS

ORDER = "node_order"


def sorted_by_id(data: Data) -> Data:
    """Returns the graph with its nodes in the order of their ids as text.

    ``data.node_order``, int64 ``(N,)``, holds the original index of each node.
    """
    if data.get("node_ids") is None:
        return data
    ids = pa.array([str(name) for name in data.node_ids], pa.large_string())
    order = torch.from_numpy(pc.sort_indices(ids).to_numpy().astype(np.int64))
    position = torch.empty_like(order)
    position[order] = torch.arange(len(order))
    out = Data(num_nodes=data.num_nodes)
    for key, value in data.to_dict().items():
        if key in ("edge_index", DIRECTED):
            out[key] = position[value]
        elif key.startswith("edge") or key == DIRECTED_WEIGHTS:
            out[key] = value
        elif isinstance(value, Tensor) and _by_node(value, data):
            out[key] = value[order]
        else:
            out[key] = value
    out.node_ids = [data.node_ids[node] for node in order.tolist()]
    out[ORDER] = order
    return out


Values = TypeVar("Values", Tensor, list[Any])


def as_given(data: Data, values: Values) -> Values:
    """Returns a tensor or list with a row per node in the order in which the user gave the
    nodes."""
    order = data.get(ORDER)
    if order is None:
        return values
    position = torch.empty_like(order)
    position[order] = torch.arange(len(order))
    if isinstance(values, list):
        return [values[node] for node in position.tolist()]
    return values[position]


def given_ids(data: Data) -> list[Any] | range:
    """Returns the ids of the nodes, or their numbers, in the order in which the user gave them."""
    ids = data.get("node_ids")
    return range(data.num_nodes) if ids is None else as_given(data, list(ids))


def as_sorted(data: Data, values: Any) -> Any:
    """The inverse of :func:`as_given`. Anything but a tensor with a row per node is returned as it
    is."""
    order = data.get(ORDER)
    if order is None or not isinstance(values, Tensor) or not _by_node(values, data):
        return values
    return values[order]


def _by_node(value: Tensor, data: Data) -> bool:
    return value.shape[:1] == (data.num_nodes,)
