"""Which nodes train, which validate, which test."""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.errors import InputError

PARTS = ("train", "val", "test")
KINDS = ("auto", "given", "published", "random")


def random_split(
    y: Tensor, seed: int, class_names: Sequence[str] | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """48/32/20 per cent of each class's labelled nodes, at least one of each class in each part.

    Args:
        y: Class of each node, -1 where there is no label, of shape [N].
        seed: Same seed, same split, on every machine.
        class_names: What error messages call the classes.

    Returns:
        Boolean masks of shape [N] for train, val and test.
    """
    labels = y.cpu().numpy()
    classes, counts = np.unique(labels[labels >= 0], return_counts=True)
    if len(classes) < 2:
        raise InputError(f"labels: found {len(classes)} classes, expected at least 2")
    for label, count in zip(classes.tolist(), counts.tolist(), strict=True):
        if count < 3:
            name = label if class_names is None else class_names[label]
            raise InputError(
                f"labels: class {name!r} has {count} labelled nodes, expected at least 3 "
                "(one each for train, val and test)"
            )

    generator = np.random.Generator(np.random.PCG64(seed))
    masks = np.zeros((3, len(labels)), dtype=bool)
    for label, count in zip(classes.tolist(), counts.tolist(), strict=True):
        nodes = generator.permutation(np.flatnonzero(labels == label))
        train = min(max(round(0.48 * count), 1), count - 2)
        val = min(max(round(0.32 * count), 1), count - train - 1)
        for mask, part in zip(masks, np.split(nodes, [train, train + val]), strict=True):
            mask[part] = True
    train_mask, val_mask, test_mask = torch.from_numpy(masks)
    return train_mask, val_mask, test_mask


def choose(data: Data, kind: str, index: int) -> tuple[Data, str]:
    """Settles on one split.

    Args:
        data: A graph with masks of shape [N] ("given"), [N, S] ("published") or none.
        kind: "given", "published", "random", or "auto" for the best that the graph has, in the
            order published, given, random.
        index: Which of the S published splits (modulo S), or the seed of the random one.

    Returns:
        A shallow copy of :obj:`data` with masks of shape [N], and the kind that was used.
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
            chosen = random_split(data.y, index, getattr(data, "class_names", None))
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    elif kind != has:
        raise InputError(f"{place}: splits: asked for {kind!r}, but the graph has {has!r} only")
    elif len(masks) < 3:
        raise InputError(f"{place}: split: has only {', '.join(masks)}, expected train, val, test")
    else:
        chosen = tuple(m[:, index % m.size(1)] if m.dim() == 2 else m for m in masks.values())
        _check(chosen, data, place)

    data = copy.copy(data)
    data.train_mask, data.val_mask, data.test_mask = chosen
    return data, kind


def _check(masks: tuple[Tensor, ...], data: Data, place: str) -> None:
    """A split that training can use: parts that hold nodes, apart, and all labelled."""
    ids = getattr(data, "node_ids", None)

    def first(nodes: Tensor) -> object:
        node = int(nodes.nonzero()[0])
        return node if ids is None else ids[node]

    for part, mask in zip(PARTS, masks, strict=True):
        if not bool(mask.any()):
            raise InputError(f"{place}: split: no node is in {part!r}, expected at least one")
        unlabelled = mask & (data.y < 0)
        if bool(unlabelled.any()):
            raise InputError(
                f"{place}: split: {int(unlabelled.sum())} nodes in {part!r} have no label "
                f"(the first has id {first(unlabelled)!r}), expected labelled nodes only"
            )
    twice = torch.stack(masks).sum(dim=0) > 1
    if bool(twice.any()):
        raise InputError(
            f"{place}: split: node {first(twice)!r} is in more than one of {', '.join(PARTS)}"
        )
    if len(data.y[masks[0]].unique()) < 2:
        raise InputError(f"{place}: split: one class only in 'train', expected at least 2")
