"""What a node's prediction rests on: the nodes that it attends to most."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse.csgraph import dijkstra
from torch import Tensor
from torch_geometric.data import Data

from dgt.graph import adjacency
from dgt.nn import Attention


@dataclass(frozen=True)
class Key:
    """A node that is attended to."""

    id: int | str
    weight: float
    """Its part of the query's attention, all keys together having 1."""
    hops: int | None
    """Edges on the way from the query, None if there is no way."""
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
    """Part of the attention, over all keys, on nodes with the query's label, if it has one."""
    edges: list[tuple[int, int]]
    """Edges among those shown: the query is 0, its keys are 1, 2, and so on."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Explanation":
        """The reverse of :func:`dataclasses.asdict`, from JSON too."""
        keys = [Key(**key) for key in values["keys"]]
        return cls(**{**values, "keys": keys, "edges": [(a, b) for a, b in values["edges"]]})


def key_weights(
    attention: Tensor | Sequence[Sequence[Attention]], num_nodes: int, nodes: Tensor
) -> Tensor:
    """How much of its attention each of some nodes has on each node, summed over criteria and
    heads, every row with the sum 1.

    Args:
        attention: What a model's ``attention`` gives for ``nodes``: full attention, of shape
            ``(M, Q, N)``, or its entries for each criterion and head.
        num_nodes: Number of nodes N.
        nodes: The query nodes, int64, each once. Shape: ``(Q,)``.

    Returns:
        Shape: ``(Q, N)``.
    """
    if isinstance(attention, Tensor):
        weights = attention.sum(dim=0).double()
    else:
        row = torch.full((num_nodes,), -1)
        row[nodes] = torch.arange(len(nodes))
        weights = torch.zeros(len(nodes) * num_nodes, dtype=torch.float64)
        for head in (head for heads in attention for head in heads):
            at = row[head.node] * num_nodes + head.key
            weights += torch.bincount(at, head.weight.double(), minlength=len(weights))
        weights = weights.view(len(nodes), num_nodes)
    return weights / weights.sum(dim=1, keepdim=True)


def same_label_share(weights: Tensor, nodes: Tensor, y: Tensor, *, itself: bool = True) -> Tensor:
    r"""The part of each query's attention on nodes with its label,

    .. math::
        \sum_{i: y_i = y_q} w_i / \sum_i w_i

    of the ``weights`` of :func:`key_weights`. Without ``itself``, of its attention on other nodes;
    not a number if there is none. Shape: ``(Q,)``.
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
    """Describes a query node and its ``top`` keys, ties by id.

    Args:
        weights: The node's row of :func:`key_weights`.
        node: The node.
        top: Number of keys, fewer if fewer are attended to.
        data: The graph, with ``y`` (-1: no label) and ``class_names``.
        ids: The user's ids of the nodes.
        predictions: The classes that the model predicts for the nodes.
    """
    order = weights.sort(descending=True, stable=True).indices[:top]
    chosen = order[weights[order] > 0].tolist()
    A = adjacency(data.edge_index, data.num_nodes)
    hops = dijkstra(A, indices=node, unweighted=True)
    labels = [data.class_names[c] if c >= 0 else None for c in data.y.tolist()]
    shown = [node, *(key for key in chosen if key != node)]
    joined = A[shown][:, shown].tocoo()
    place = np.array([0, *(i for i, key in enumerate(chosen, start=1) if key != node)])
    labelled = labels[node] is not None
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
        same_label=float(weights[data.y == data.y[node]].sum()) if labelled else None,
        edges=[
            (int(place[a]), int(place[b]))
            for a, b in zip(joined.row, joined.col, strict=True)
            if a < b
        ],
    )
