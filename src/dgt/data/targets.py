"""The labels of a graph in the form that each task needs.

Normalization only knows classes. For several labels per node and for numbers, the labels are taken
out of a graph before it is normalized, and put back in their own form.
"""

import copy
import math
from typing import Literal

import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.files import normalize
from dgt.errors import InputError

TaskKind = Literal["classification", "multilabel", "regression"]
SEPARATOR = ";"  # between the labels of a node in a table


def normalize_for(data: Data, task: TaskKind, directed: bool | None = None) -> Data:
    """Checks a graph and normalizes it, with labels in the form of a task.

    Args:
        data: The graph. Labels that were read from a table are classes with the cells as names.
        task: The task.
        directed: Whether the edges are directed (default: see
            :func:`~dgt.data.files.normalization.normalize`).

    Returns:
        A new graph, with ``y`` as in :func:`~dgt.data.labels.is_labeled` and the names of the
        classes or labels in ``class_names``.
    """
    if task == "classification" or not isinstance(data, Data):
        return normalize(data, directed=directed)
    place = getattr(data, "name", None) or "graph"
    y, names = data.get("y"), data.get("class_names")
    rest = copy.copy(data)
    rest.y = rest.class_names = None
    out = normalize(rest, directed=directed)
    if y is None:
        y = torch.full((out.num_nodes,), -1)
        names = []
    y = torch.as_tensor(y).detach().cpu()
    if y.dim() == 0 or len(y) != out.num_nodes:
        raise InputError(f"{place}: y: got shape {tuple(y.shape)}, expected ({out.num_nodes}, ...)")
    if task == "regression":
        out.y, out.class_names = _numbers(y, names, place), []
    else:
        out.y, out.class_names = _several(y, names, place)
    return out


def _numbers(y: Tensor, names: list[str] | None, place: str) -> Tensor:
    """Returns a number per node, float64, NaN for nodes without a label."""
    if y.dim() == 2 and y.size(1) == 1:
        y = y[:, 0]
    if y.dim() != 1 or y.is_complex() or y.dtype == torch.bool:
        raise InputError(
            f"{place}: y: got {y.dtype} {tuple(y.shape)}, expected one number per node"
        )
    if names is None or y.is_floating_point():
        values = y.double()
    else:
        numbers = torch.tensor([*(_number(name, place) for name in names), math.nan]).double()
        values = numbers[y]  # label -1 selects the last entry
    if bool(values.isinf().any()):
        node = int(values.isinf().nonzero()[0])
        raise InputError(f"{place}: y: node {node}: got {values[node]}, expected a finite number")
    return values


def _number(name: str, place: str) -> float:
    try:
        return float(name)
    except ValueError:
        raise InputError(
            f"{place}: label: got {name!r}, expected a number for regression"
        ) from None


def _several(y: Tensor, names: list[str] | None, place: str) -> tuple[Tensor, list[str]]:
    """Returns 0 or 1 for each node and label, int64, -1 for nodes without labels, and the names."""
    if y.dim() == 2:
        bad = (y != 0) & (y != 1) & (y != -1)
        if y.is_complex() or bool(bad.any()):
            node, column = bad.nonzero()[0].tolist()
            raise InputError(
                f"{place}: y: node {node}, label {column}: got {y[node, column].item()}, expected "
                "0 or 1, or -1 in all columns of a node without labels"
            )
        some = (y == -1).any(dim=1) & ~(y == -1).all(dim=1)
        if bool(some.any()):
            node = int(some.nonzero()[0])
            raise InputError(
                f"{place}: y: node {node}: has -1 in some columns, expected all or none"
            )
        labels = [str(c) for c in range(y.size(1))] if names is None else [str(n) for n in names]
        if len(labels) != y.size(1):
            raise InputError(
                f"{place}: class_names: got {len(labels)} names, but y has {y.size(1)} columns"
            )
        return y.long(), labels
    if names is None:
        raise InputError(
            f"{place}: y: got shape {tuple(y.shape)}, expected (N, labels) with 0 and 1, or labels "
            f"as text, separated by {SEPARATOR!r}"
        )
    sets = [{part.strip() for part in name.split(SEPARATOR)} - {""} for name in names]
    labels = sorted(set().union(*sets))
    column = {label: c for c, label in enumerate(labels)}
    rows = torch.zeros(len(sets) + 1, len(labels), dtype=torch.int64)
    for row, each in enumerate(sets):
        rows[row, [column[label] for label in each]] = 1
    rows[-1] = -1  # selected by label -1
    return rows[y.long()], labels
