"""Tasks: the loss, the metrics and the predictions."""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

from dgt.errors import InputError
from dgt.evaluate import METRICS, Metric, TaskName

log = logging.getLogger("dgt")


class Task(ABC):
    """What the training loop and the estimator expect of a task.

    Args:
        name: Name of the task, which decides the metrics that are defined.
        out_channels: Number of output channels of the model.
        metric: Name of the metric that selects the best epoch.
    """

    def __init__(self, name: TaskName, out_channels: int, metric: str) -> None:
        self.name = name
        self.out_channels = out_channels
        self.metric = metric
        self.require(metric)

    def require(self, metric: str) -> None:
        """Raises an error if a metric is not defined for the task."""
        if metric not in METRICS or self.name not in METRICS[metric].tasks:
            raise InputError(
                f"metric: {metric!r} is not defined for {self.name} labels; choose from "
                f"{', '.join(self.metrics)}"
            )

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics of the task by name."""
        return {name: metric for name, metric in METRICS.items() if self.name in metric.tasks}

    @abstractmethod
    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """Returns the loss, summed over nodes."""

    @abstractmethod
    def scores(self, logits: Tensor) -> Tensor:
        """Returns the scores of each node, such as probabilities. Shape: ``(N, out_channels)``."""

    @abstractmethod
    def predict(self, logits: Tensor) -> Tensor:
        """Returns the prediction for each node, in the form of the labels."""

    @abstractmethod
    def constant(self, y: Tensor) -> Tensor:
        """Returns the logits that fit some labels best, if all nodes had the same. Shape:
        ``(out_channels,)``."""

    def comparable(self, logits: Tensor, y: Tensor, metric: Metric) -> tuple[Tensor, Tensor]:
        """Returns the scores and the labels in the form that a metric expects."""
        return self.scores(logits.double()), y

    def measure(
        self, logits: Tensor, y: Tensor, names: Iterable[str] | None = None, quiet: bool = False
    ) -> dict[str, float]:
        """Returns the values of some metrics by name.

        Args:
            logits: The logits of some nodes. Shape: ``(N, out_channels)``.
            y: Their labels.
            names: The metrics (default: all that can be computed).
            quiet: Do not warn of metrics that cannot be computed.
        """
        logits, y = logits.detach().cpu(), y.cpu()
        values = {}
        for name in self.metrics if names is None else names:
            metric = METRICS[name]
            try:
                values[name] = metric.value(name, *self.comparable(logits, y, metric))
            except Exception as error:
                if names is not None:
                    raise
                # A finished training is not lost over a metric that did not select it.
                if not quiet:
                    log.warning("metric %r is left out: %s", name, error)
        return values


class Classification(Task):
    """Classification of nodes with the cross-entropy loss.

    Args:
        classes: Number of classes.
        metric: Name of the metric that selects the best epoch.
        positive: The positive one of two classes, which metrics such as the F1 score are about.
        threshold: Probability of the positive class from which on it is predicted (default: that
            of the other class).
        class_weights: Weight of each class in the loss (default: 1). Shape: ``(classes,)``.
    """

    def __init__(
        self,
        classes: int,
        metric: str = "accuracy",
        *,
        positive: int = 1,
        threshold: float | None = None,
        class_weights: Tensor | None = None,
    ) -> None:
        super().__init__("binary" if classes == 2 else "multiclass", classes, metric)
        self.positive = positive
        self.threshold = threshold
        self.class_weights = class_weights

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        weights = None if self.class_weights is None else self.class_weights.to(logits)
        return F.cross_entropy(logits, y, weights, reduction="sum")

    def scores(self, logits: Tensor) -> Tensor:
        return logits.softmax(dim=1)

    def predict(self, logits: Tensor) -> Tensor:
        if self.threshold is None:
            return logits.argmax(dim=1)
        found = self.scores(logits.double())[:, self.positive] >= self.threshold
        return torch.where(found, self.positive, 1 - self.positive)

    def constant(self, y: Tensor) -> Tensor:
        # One node more of each class, so that a class without nodes stays possible.
        counts = y.bincount(minlength=self.out_channels).float() + 1
        if self.class_weights is not None:
            counts *= self.class_weights.to(counts)
        return counts.log() - counts.log().mean()

    def comparable(self, logits: Tensor, y: Tensor, metric: Metric) -> tuple[Tensor, Tensor]:
        if metric.probabilities:
            scores = self.scores(logits.double())
        elif self.threshold is None:
            scores = logits
        else:
            scores = F.one_hot(self.predict(logits), self.out_channels).double()
        if self.name == "binary" and self.positive == 0:
            return scores.flip(1), 1 - y
        return scores, y


def best_threshold(task: Classification, logits: Tensor, y: Tensor) -> float:
    """Returns the probability of the positive class with the best F1 score on some nodes.

    It lies halfway between the lowest probability that is predicted as positive and the next one
    below. Of several equally good thresholds, the highest is returned.
    """
    from sklearn.metrics import precision_recall_curve

    p = task.scores(logits.double())[:, task.positive]
    precision, recall, thresholds = precision_recall_curve((y == task.positive).long(), p)
    f1 = 2 * precision * recall / (precision + recall).clip(min=1e-300)
    best = len(f1) - 2 - int(f1[-2::-1].argmax())
    lowest = float(thresholds[best])
    below = float(thresholds[best - 1]) if best > 0 else 0.0
    return (lowest + below) / 2
