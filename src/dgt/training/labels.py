"""What follows from the labels of a graph: the metric, the positive class and the class weights."""

import logging
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import TrainConfig
from dgt.data.targets import TaskKind
from dgt.errors import InputError
from dgt.evaluate import METRICS, TaskName
from dgt.training import distributed

log = logging.getLogger("dgt")

# A class is rare if it has less than this share of the labeled nodes ...
RARE_SHARE = 0.1
# ... and less than this multiple of the most frequent class: of 20 equal classes, none is rare.
RARE_RATIO = 0.2
# Names of two classes of which the second is positive, even if it is the more frequent one.
POSITIVE = {("0", "1"), ("false", "true"), ("no", "yes"), ("n", "y"), ("-", "+"), ("neg", "pos")}


def facts(data: Data, settings: TrainConfig, named: bool) -> dict[str, Any]:
    """Returns what a model stores about the labels of its training graph, see
    :class:`~dgt.runs.facts.Facts`. Warns of rare classes.

    Args:
        data: The graph with one split, and labels in the form of the task.
        settings: The settings.
        named: Whether the classes have names. Otherwise, their names are their values.
    """
    names, given = data.class_names, settings.metric
    if settings.task != "classification":
        for setting in ("class_weight", "threshold"):
            value = getattr(settings, setting)
            if value != getattr(TrainConfig(), setting):
                raise InputError(
                    f"{setting}: got {value!r}, which task {settings.task} does not use"
                )
    if settings.task == "regression":
        own = data.y[data.train_mask]
        scale = float(own.std(correction=0)) or 1.0
        found = {"metric": given or "mae", "mean": float(own.mean()), "scale": scale}
        return {"task": "regression", "class_names": [], "classes": [], **found}
    if settings.task == "multilabel":
        if not names:
            raise InputError(f"{data.name}: found no label, expected at least one")
        classes = list(range(len(names)))
        metric = given or "f1"
        return {"task": "multilabel", "class_names": names, "classes": classes, "metric": metric}
    counts, few = class_counts(_seen(data), len(names)), rare(data, settings.task)
    task: TaskName = "binary" if len(names) == 2 else "multiclass"
    metric = given or default_metric(data, task, few)
    if few and data.get("metric") is None and distributed.rank() == 0:
        say_rare(data, counts, few, metric, given is not None)
    return {
        "class_names": names,
        "classes": list(range(len(names))) if named else [int(name) for name in names],
        "metric": metric,
        "positive": positive_class(names, counts),
        "threshold": settings.threshold,
    }


def known(data: Data) -> Tensor:
    """Returns the labels of training nodes, which a model may read, and no label for all others."""
    none = torch.nan if data.y.is_floating_point() else -1
    own = data.train_mask if data.y.dim() == 1 else data.train_mask[:, None]
    return data.y.where(own, none)


def rare(data: Data, task: TaskKind) -> list[int]:
    """Returns the classes with few train and val nodes. Other tasks have none."""
    if task != "classification":
        return []
    return rare_classes(class_counts(_seen(data), len(data.class_names)))


def _seen(data: Data) -> Tensor:
    """Returns the labels of train and val nodes, the only ones that may decide how to train."""
    return data.y[data.train_mask | data.val_mask]


def class_counts(y: Tensor, classes: int) -> Tensor:
    """Returns the number of labeled nodes of each class, int64."""
    return y[y >= 0].bincount(minlength=classes)


def minority(data: Data, task: TaskKind) -> int:
    """Returns the number of training nodes that are not of the most frequent class. For tasks
    without classes, that is all of them."""
    own = data.y[data.train_mask]
    if task != "classification":
        return len(own)
    return len(own) - int(class_counts(own, len(data.class_names)).max())


def rare_classes(counts: Tensor) -> list[int]:
    """Returns the classes with so few nodes that accuracy says little about them."""
    few = (counts < RARE_SHARE * counts.sum()) & (counts < RARE_RATIO * counts.max())
    return (few & (counts > 0)).nonzero().squeeze(1).tolist()


def positive_class(class_names: list[str], counts: Tensor) -> int | None:
    """Returns the positive one of two classes: the second if the names say so, such as no and yes,
    otherwise the one with fewer nodes. None unless there are two classes."""
    if len(class_names) != 2:
        return None
    first, second = (name.strip().lower() for name in class_names)
    if (first, second) in POSITIVE:
        return 1
    if (second, first) in POSITIVE:
        return 0
    return 0 if counts[0] < counts[1] else 1


def balanced_weights(counts: Tensor) -> Tensor:
    """Returns weights of the classes that are inversely proportional to their numbers of training
    nodes, with a mean of 1 over the training nodes. Shape: ``(classes,)``."""
    there = counts > 0
    return torch.where(there, counts.sum() / (there.sum() * counts.clamp(min=1)), 1.0)


def default_metric(data: Data, task: TaskName, rare: list[int]) -> str:
    """Returns the metric that selects the best epoch if none is set: that of the benchmark, else
    average precision or macro F1 if a class is rare, else accuracy."""
    own = data.get("metric")
    if own is not None and task in METRICS[own].tasks:
        return str(own)
    if not rare:
        return "accuracy"
    return "average-precision" if task == "binary" else "macro-f1"


def say_rare(data: Data, counts: Tensor, rare: list[int], metric: str, given: bool) -> None:
    """Warns of rare classes, and says which metric selects the best epoch."""
    share = [f"{data.class_names[c]!r} ({float(counts[c] / counts.sum()):.1%})" for c in rare[:10]]
    more = f" and {len(rare) - 10} more" if len(rare) > 10 else ""
    chosen = "as set" if given else "set --metric for another"
    log.warning(
        "%s: few of the train and val nodes are of class %s%s, so accuracy alone says little; "
        "the best epoch is selected by %s (%s); --class-weight balanced gives rare classes more "
        "weight",
        data.name,
        ", ".join(share),
        more,
        metric,
        chosen,
    )
