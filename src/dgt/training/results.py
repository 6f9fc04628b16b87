"""The results of training: the content of ``metrics.json``, and the predictions."""

import logging
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import torch_geometric
from torch import Tensor, nn
from torch_geometric.data import Data

import dgt
from dgt.config import Config
from dgt.data.files import Predictions
from dgt.data.recipe import as_given, given_ids
from dgt.data.splits import PARTS
from dgt.data.targets import SEPARATOR
from dgt.evaluate import summarize
from dgt.runs.facts import Facts
from dgt.training import distributed
from dgt.training.loop import History
from dgt.training.problem import Problem
from dgt.training.task import Task

log = logging.getLogger("dgt.classes")
SHOWN = 10  # classes in a warning
# The metrics that tell whether rare classes are found, for two classes and for more.
FOR_RARE = ("average-precision", "macro-f1")
# Training nodes are memorized if their score is at least this high ...
LEARNED = 0.5
# ... and that of validation nodes less than this share of it.
MEMORIZED = 0.5

# Always at the top level of metrics.json, even if another metric selects the best epoch.
ALWAYS = "accuracy"
# The same for all runs on a graph.
SHARED = ("graph", "model", "metric", "rare_classes", "positive")


def of_run(
    problem: Problem,
    task: Task,
    model: nn.Module,
    history: History,
    logits: Tensor,
    graph: str | None = None,
) -> dict[str, Any]:
    """Returns the metrics of one run, and warns of classes that are never predicted and of training
    nodes that are memorized.

    Args:
        problem: What the model was trained on.
        task: Defines the metrics.
        model: The trained model.
        history: History of training.
        logits: The logits of all nodes. Shape: ``(N, C)``.
        graph: Name or path of the graph (default: ``data.name``).
    """
    config, data = problem.config, problem.data
    masks = {part: data[f"{part}_mask"] for part in PARTS}
    measured = {part: task.measure(logits[m], data.y[m]) for part, m in masks.items()}
    if config.train.task == "classification":
        warn_unpredicted(task.predict(logits), data)
    if problem.rare:
        warn_memorized(measured["train"], measured["val"], config)
    return {
        "graph": graph or data.name,
        "model": config.model.model,
        "metric": task.metric,
        **{
            f"{part}_{name}": measured[part][name]
            for name in _named(task.metric)
            for part in PARTS
            if name in measured[part]
        },
        "rare_classes": [data.class_names[c] for c in problem.rare],
        **_decision(problem),
        **measured,
        "best_epoch": history.best_epoch,
        "epochs": len(history.epochs),
        "seconds": history.seconds,
        "seed": config.train.seed,
        "splits": problem.splits,
        "split": problem.split,
        "parameters": sum(p.numel() for p in model.parameters()),
        "device": str(next(model.parameters()).device),
        "versions": {
            "dgt": dgt.__version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "torch_geometric": torch_geometric.__version__,
            "numpy": np.__version__,
        },
    }


def _decision(problem: Problem) -> dict[str, Any]:
    """Returns the positive class and its threshold, for two classes."""
    facts = problem.facts
    if facts.positive is None:
        return {}
    return {"positive": facts.class_names[facts.positive], "threshold": facts.threshold or 0.5}


def of_runs(metrics: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns means over several runs, with standard deviations and 95% confidence intervals."""
    first = metrics[0]
    summary = {name: first[name] for name in SHARED if name in first}
    nested: dict[str, Any] = {}
    for part in PARTS:
        everywhere = [name for name in first[part] if all(name in m[part] for m in metrics)]
        over = {name: summarize([m[part][name] for m in metrics]) for name in everywhere}
        for suffix, number in (("", "mean"), ("_std", "std"), ("_ci95", "ci95")):
            values = {name: each[number] for name, each in over.items()}
            nested[f"{part}{suffix}"] = values
            own = (name for name in _named(first["metric"]) if name in values)
            summary |= {f"{part}_{name}{suffix}": values[name] for name in own}
    shared = (*SHARED, "splits", "parameters", "device", "versions")
    return {
        **summary,
        **nested,
        "best_epoch": summarize([m["best_epoch"] for m in metrics])["mean"],
        "epochs": sum(m["epochs"] for m in metrics),
        "seconds": sum(m["seconds"] for m in metrics),
        "seed": first["seed"],
        **{name: first[name] for name in ("splits", "parameters", "device", "versions")},
        "runs": [{k: v for k, v in m.items() if k not in shared} for m in metrics],
    }


def named(
    task: Task, facts: Facts, graph: Data, logits: Tensor, *, own: bool = False
) -> Predictions:
    """Returns the predictions with the user's ids and class names.

    Args:
        task: The task.
        facts: What the model stores about its training graph.
        graph: The graph.
        logits: The logits of its nodes. Shape: ``(N, C)``.
        own: Whether it is the training graph.
    """
    parts = as_given(graph, facts.parts(None if own else graph))
    logits = as_given(graph, logits)
    predicted, scores = task.predict(logits).numpy(), task.scores(logits).numpy()
    names, ids = facts.class_names, given_ids(graph)
    if facts.task == "regression":
        return Predictions(ids, pa.array(predicted), parts)
    if facts.task == "multilabel":
        sets = [
            SEPARATOR.join(n for n, one in zip(names, row, strict=True) if one) for row in predicted
        ]
        return Predictions(ids, pa.array(sets), parts, None, names, scores)
    best = np.take_along_axis(scores, predicted[:, None], axis=1)[:, 0]
    text = pa.array(names, pa.string()).take(pa.array(predicted))
    return Predictions(ids, text, parts, best, names, scores)


def _named(metric: str) -> list[str]:
    """Returns the metrics that are also at the top level, as ``val_METRIC``."""
    return list(dict.fromkeys([ALWAYS, metric]))


def warn_unpredicted(predictions: Tensor, data: Data) -> None:
    """Warns, on rank 0, of classes with labeled nodes that are not predicted for any node.

    Args:
        predictions: Class of each node. Shape: ``(N,)``.
        data: The training graph.
    """
    class_names = data.class_names
    labeled = data.y[data.y >= 0].bincount(minlength=len(class_names))
    predicted = predictions.bincount(minlength=len(class_names))
    never = ((labeled > 0) & (predicted == 0)).nonzero().squeeze(1).tolist()
    if not never or distributed.rank() > 0:
        return
    shown = [f"{class_names[c]!r} ({int(labeled[c])} labeled nodes)" for c in never[:SHOWN]]
    more = [f"{len(never) - SHOWN} more"] if len(never) > SHOWN else []
    log.warning(
        "the model never predicts %d of %d classes: %s; try other settings, such as a lower "
        "dropout, or select by --metric balanced-accuracy",
        len(never),
        len(class_names),
        ", ".join(shown + more),
    )


def warn_memorized(train: dict[str, float], val: dict[str, float], config: Config) -> None:
    """Warns, on rank 0, if rare classes are found among the training nodes only.

    Args:
        train: The metrics of the training nodes.
        val: The metrics of the validation nodes.
        config: The settings, which the advice depends on.
    """
    name = next((each for each in FOR_RARE if each in train and each in val), None)
    if name is None or distributed.rank() > 0:
        return
    if train[name] < LEARNED or val[name] >= MEMORIZED * train[name]:
        return
    advice = [f"fewer than {config.model.hidden_channels} --hidden-channels", "more --dropout"]
    if config.model.model in ("dgt", "dgt-light"):
        if config.sequences.criteria != ("neighbors",):
            advice.insert(0, "--criteria neighbors")
        if config.encoding.encoding != "none":
            advice.insert(0, "--encoding none")
    log.warning(
        "the model seems to have memorized the training nodes: %s is %.2f on training nodes and "
        "%.2f on validation nodes; try %s or %s",
        name,
        train[name],
        val[name],
        ", ".join(advice[:-1]),
        advice[-1],
    )


@contextmanager
def without_class_warnings() -> Iterator[None]:
    """Silences these warnings, for searches that also try unsuitable settings."""
    before = log.disabled
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = before
