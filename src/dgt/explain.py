"""Explains the prediction for a node by the nodes that it attends to most."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from scipy.sparse import csgraph
from torch import Tensor, nn
from torch_geometric.data import Data

from dgt.data.matrices import adjacency
from dgt.errors import InputError
from dgt.nn import Attention
from dgt.nn.ensemble import members_of


@dataclass(frozen=True)
class Key:
    """A node that is attended to."""

    id: int | str
    weight: float
    """Share of the query's attention; the weights of all keys sum to 1."""
    hops: int | None
    """Distance from the query in the graph, None if there is no path."""
    label: str | None
    prediction: str


@dataclass(frozen=True)
class Explanation:
    """The most important keys of a query node, by descending weight."""

    id: int | str
    label: str | None
    prediction: str
    keys: list[Key]
    same_label: float | None
    """Share of attention on nodes with the query's label, None if it has no label."""
    edges: list[tuple[int, int]]
    """Edges between the query (0) and its keys (1, 2 and so on)."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Explanation":
        """Inverse of :func:`dataclasses.asdict`, also after a round trip through JSON."""
        keys = [Key(**key) for key in values["keys"]]
        return cls(**{**values, "keys": keys, "edges": [(a, b) for a, b in values["edges"]]})


def key_weights(
    attention: Tensor | Sequence[Sequence[Attention]], num_nodes: int, nodes: Tensor
) -> Tensor:
    """Returns how much attention some nodes pay to each node, on the CPU.

    The weights are summed over criteria and heads and scaled such that each row sums to 1.

    Args:
        attention: Result of a model's ``attention`` for ``nodes``: full attention of shape
            ``(M, Q, N)``, or the entries of each criterion and head.
        num_nodes: Number of nodes N.
        nodes: The query nodes, int64, each once. Shape: ``(Q,)``.

    Returns:
        Shape: ``(Q, N)``.
    """
    nodes = nodes.cpu()
    if isinstance(attention, Tensor):
        weights = attention.sum(dim=0).cpu().double()
    else:
        row = torch.full((num_nodes,), -1)
        row[nodes] = torch.arange(len(nodes))
        weights = torch.zeros(len(nodes) * num_nodes, dtype=torch.float64)
        for head in (head for heads in attention for head in heads):
            at = row[head.node.cpu()] * num_nodes + head.key.cpu()
            weights += torch.bincount(at, head.weight.cpu().double(), minlength=len(weights))
        weights = weights.view(len(nodes), num_nodes)
    return weights / weights.sum(dim=1, keepdim=True)


def model_weights(
    model: nn.Module, name: str, inputs: Mapping[str, Any], num_nodes: int, nodes: Tensor
) -> Tensor:
    """Returns the :func:`key_weights` of a model in evaluation mode; for an ensemble, the mean over
    its members.

    Args:
        model: The model.
        name: Name of the model, for the error message if it has no attention over nodes.
        inputs: The model's keyword arguments, except for ``nodes``.
        num_nodes: Number of nodes N.
        nodes: The query nodes, int64, each once. Shape: ``(Q,)``.

    Returns:
        Shape: ``(Q, N)``.
    """
    if not has_attention(model):
        raise InputError(
            f"{name}: this model has no attention over nodes; use dgt, dgt-light, dgt-plus, "
            "transformer, graphormer, gt-full or gt-sparse to explain predictions"
        )
    device = next(model.parameters()).device
    given = {name: x.to(device) if isinstance(x, Tensor) else x for name, x in inputs.items()}
    found = [
        key_weights(cast(Any, member).attention(**given, nodes=nodes.to(device)), num_nodes, nodes)
        for member in members_of(model.eval())
    ]
    return torch.stack(found).mean(dim=0) if len(found) > 1 else found[0]


def has_attention(model: nn.Module) -> bool:
    """Returns whether a model attends to nodes."""
    return all(hasattr(member, "attention") for member in members_of(model))


def find_node(node: int | str, data: Data, ids: Sequence[int | str]) -> int:
    """Returns the index of the node with an id."""
    # Whether ids are read as numbers or as text depends on the other ids in the file.
    for index, known in enumerate(ids):
        if str(known) == str(node):
            return index
    raise InputError(f"{data.name}: has no node {str(node)!r}")


def same_label_share(weights: Tensor, nodes: Tensor, y: Tensor, *, itself: bool = True) -> Tensor:
    r"""Returns the share of each query's attention on nodes with its label,

    .. math::
        \sum_{i: y_i = y_q} w_i / \sum_i w_i

    Args:
        weights: The :func:`key_weights` of the queries. Shape: ``(Q, N)``.
        nodes: The query nodes, int64. Shape: ``(Q,)``.
        y: The labels of all nodes. Shape: ``(N,)``.
        itself: Whether the attention of a query on itself counts. Otherwise, the share is NaN if a
            query attends to no other node.

    Returns:
        Shape: ``(Q,)``.
    """
    if not itself:
        weights = weights.scatter(1, nodes[:, None], 0.0)
    return (weights * (y[nodes, None] == y)).sum(dim=1) / weights.sum(dim=1)


def explain(
    weights: Tensor,
    node: int,
    top: int,
    data: Data,
    ids: Sequence[int | str],
    predictions: Sequence[str],
) -> Explanation:
    """Describes a query node and its most important keys; ties are broken by index.

    Args:
        weights: The node's row of :func:`key_weights`.
        node: Index of the query node.
        top: Maximum number of keys. Keys without attention are left out.
        data: The graph, with ``y`` (-1: no label) and ``class_names``.
        ids: The user's node ids.
        predictions: The predicted class of each node.
    """
    order = weights.sort(descending=True, stable=True).indices[:top]
    chosen = order[weights[order] > 0].tolist()
    A = adjacency(data.edge_index, data.num_nodes)
    hops = csgraph.dijkstra(A, indices=node, unweighted=True)
    labels = [data.class_names[c] if c >= 0 else None for c in data.y.tolist()]
    shown = [node, *(key for key in chosen if key != node)]
    joined = A[shown][:, shown].tocoo()
    place = np.array([0, *(i for i, key in enumerate(chosen, start=1) if key != node)])
    labeled = labels[node] is not None
    return Explanation(
        id=ids[node],
        label=labels[node],
        prediction=predictions[node],
        keys=[
            Key(
                id=ids[key],
                weight=float(weights[key]),
                hops=int(hops[key]) if np.isfinite(hops[key]) else None,
                label=labels[key],
                prediction=predictions[key],
            )
            for key in chosen
        ],
        same_label=float(weights[data.y == data.y[node]].sum()) if labeled else None,
        edges=[
            (int(place[a]), int(place[b]))
            for a, b in zip(joined.row, joined.col, strict=True)
            if a < b
        ],
    )
