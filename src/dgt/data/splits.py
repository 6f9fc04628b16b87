"""Splits of the labeled nodes into train, val and test."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.labels import are_classes, is_labeled
from dgt.data.recipe.order import as_sorted
from dgt.data.tensors import plain
from dgt.errors import InputError

PARTS = ("train", "val", "test")


def labeled_nodes(data: Data, y: Tensor, mask: str | Tensor) -> Tensor:
    """Returns the mask of the labeled nodes of a part of a graph.

    Args:
        data: The graph, with the masks of its split.
        y: The labels, as in :func:`is_labeled`.
        mask: ``"train"``, ``"val"``, ``"test"``, ``"all"``, or a boolean mask of shape ``(N,)``, in
            the order in which the user gave the nodes.
    """
    labeled = is_labeled(y)
    if isinstance(mask, str):
        if mask not in (*PARTS, "all"):
            raise InputError(f"mask: got {mask!r}, expected {', '.join(PARTS)} or all")
        chosen = labeled if mask == "all" else data[f"{mask}_mask"]
    elif not isinstance(mask, Tensor):
        kind = type(mask).__name__
        raise InputError(f"mask: got {kind}, expected a boolean tensor ({len(y)},)")
    else:
        chosen = plain(mask, "mask")
        if chosen.dtype != torch.bool or chosen.shape != y.shape:
            kind = f"{mask.dtype} {tuple(mask.shape)}"
            raise InputError(f"mask: got {kind}, expected a boolean tensor ({len(y)},)")
        chosen = as_sorted(data, chosen)
    chosen = chosen & labeled
    if not bool(chosen.any()):
        raise InputError(f"{data.name}: mask: contains no labeled node")
    return chosen


# More classes than this whose names are numbers are likely meant as numbers.
MANY = 10
KINDS = ("auto", "given", "published", "random")


def random_split(
    y: Tensor, seed: int, class_names: Sequence[str] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Splits the labeled nodes of each class 48/32/20%, with at least one node in each part.

    Args:
        y: Classes, -1 for unlabeled nodes, shape ``(N,)``.
        seed: Random seed; the split is the same on every machine.
        class_names: Names of the classes for error messages.

    Returns:
        Boolean masks for train, val and test, shape ``(N,)`` each.
    """
    labels = y.cpu().numpy()
    classes, counts = np.unique(labels[labels >= 0], return_counts=True)
    if len(classes) < 2:
        raise InputError(f"labels: found {len(classes)} classes, expected at least 2")
    for label, count in zip(classes.tolist(), counts.tolist(), strict=True):
        if count < 3:
            name = label if class_names is None else class_names[label]
            numbers = len(classes) > MANY and all(map(_is_number, class_names or [""]))
            hint = "; to predict numbers, set --task regression" if numbers else ""
            raise InputError(
                f"labels: class {name!r} has {count} labeled nodes, expected at least 3 "
                f"(one each for train, val and test){hint}"
            )

    generator = np.random.Generator(np.random.PCG64(seed))
    masks = np.zeros((3, len(labels)), dtype=bool)
    for label in classes.tolist():
        _share(generator.permutation(np.flatnonzero(labels == label)), masks)
    train_mask, val_mask, test_mask = torch.from_numpy(masks)
    return train_mask, val_mask, test_mask


def _is_number(name: str) -> bool:
    try:
        return bool(np.isfinite(float(name)))
    except ValueError:
        return False


def split_in_one(labeled: Tensor, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Splits the labeled nodes 48/32/20%, without regard to their labels.

    Args:
        labeled: The labeled nodes, bool ``(N,)``.
        seed: Random seed; the split is the same on every machine.

    Returns:
        Boolean masks for train, val and test, shape ``(N,)`` each.
    """
    nodes = np.flatnonzero(labeled.numpy())
    if len(nodes) < 3:
        raise InputError(f"labels: found {len(nodes)} labeled nodes, expected at least 3")
    masks = np.zeros((3, len(labeled)), dtype=bool)
    _share(np.random.Generator(np.random.PCG64(seed)).permutation(nodes), masks)
    train_mask, val_mask, test_mask = torch.from_numpy(masks)
    return train_mask, val_mask, test_mask


def _share(nodes: np.ndarray, masks: np.ndarray) -> None:
    """Adds at least three nodes to the three parts, in order."""
    count = len(nodes)
    train = min(max(round(0.48 * count), 1), count - 2)
    val = min(max(round(0.32 * count), 1), count - train - 1)
    for mask, part in zip(masks, np.split(nodes, [train, train + val]), strict=True):
        mask[part] = True


def choose(data: Data, kind: str, index: int) -> tuple[Data, str]:
    """Chooses one split.

    Args:
        data: Graph with masks of shape ``(N,)`` ("given"), ``(N, S)`` ("published") or without
            masks.
        kind: "given", "published", "random", or "auto" for the masks of the graph if it has any,
            and "random" otherwise.
        index: Index of the published split (modulo S), or the seed of the random split.

    Returns:
        A shallow copy of :obj:`data` with masks of shape ``(N,)``, and the kind of split.
    """
    if kind not in KINDS:
        raise InputError(f"splits: got {kind!r}, expected one of {', '.join(KINDS)}")
    place = getattr(data, "name", None) or "graph"
    masks = {part: data[f"{part}_mask"] for part in PARTS if f"{part}_mask" in data}
    published = any(mask.dim() == 2 for mask in masks.values())
    has = "random" if not masks else "published" if published else "given"
    if kind == "auto":
        kind = has

    chosen: tuple[Tensor, ...]
    if kind == "random":
        try:
            if are_classes(data.y):
                chosen = random_split(data.y, index, getattr(data, "class_names", None))
            else:
                chosen = split_in_one(is_labeled(data.y), index)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    elif kind != has:
        possible = " or ".join(dict.fromkeys(("auto", has, "random")))
        raise InputError(f"{place}: splits: got {kind!r}, expected {possible} for this graph")
    elif len(masks) < 3:
        raise InputError(f"{place}: split: got only {', '.join(masks)}, expected train, val, test")
    else:
        chosen = tuple(m[:, index % m.size(1)] if m.dim() == 2 else m for m in masks.values())
        _check(chosen, data, place)

    data = copy.copy(data)
    data.train_mask, data.val_mask, data.test_mask = chosen
    return data, kind


def require_several(data: Data, kind: str, place: str) -> None:
    """Raises an error if a graph has one split of its own, so that there is none to choose.

    Args:
        data: Graph as in :func:`choose`.
        kind: Kind of split as in :func:`choose`.
        place: Name of the setting in the error message.
    """
    masks = [data[f"{part}_mask"] for part in PARTS if f"{part}_mask" in data]
    if kind in ("auto", "given") and masks and all(mask.dim() == 1 for mask in masks):
        name = getattr(data, "name", None) or "graph"
        raise InputError(
            f"{place}: {name} has one split of its own, which has no number; leave out {place}, or "
            "choose --splits random"
        )


def part_numbers(data: Data) -> Tensor:
    """Returns, for each node, 1 plus its part of the split in :data:`PARTS`, or 0, uint8."""
    numbers = torch.zeros(data.num_nodes, dtype=torch.uint8)
    for n, part in enumerate(PARTS, start=1):
        numbers[data[f"{part}_mask"]] = n
    return numbers


def _check(masks: tuple[Tensor, ...], data: Data, place: str) -> None:
    """Checks that the parts are nonempty, disjoint and labeled."""
    ids = getattr(data, "node_ids", None)

    def first(nodes: Tensor) -> object:
        node = int(nodes.nonzero()[0])
        return node if ids is None else ids[node]

    for part, mask in zip(PARTS, masks, strict=True):
        if not bool(mask.any()):
            raise InputError(f"{place}: split: no node in {part!r}, expected at least one")
        unlabeled = mask & ~is_labeled(data.y)
        if bool(unlabeled.any()):
            raise InputError(
                f"{place}: split: {int(unlabeled.sum())} nodes in {part!r} have no label "
                f"(the first has id {first(unlabeled)!r}), expected labeled nodes only"
            )
    twice = torch.stack(masks).sum(dim=0) > 1
    if bool(twice.any()):
        raise InputError(
            f"{place}: split: node {first(twice)!r} is in more than one of {', '.join(PARTS)}"
        )
    if are_classes(data.y) and len(data.y[masks[0]].unique()) < 2:
        raise InputError(f"{place}: split: only one class in 'train', expected at least 2")
