"""Tasks: the loss, the metrics and the predictions."""

import logging
from collections.abc import Iterable, Mapping
from typing import Protocol

import torch.nn.functional as F
from torch import Tensor

from dgt.evaluate import METRICS, Metric

log = logging.getLogger("dgt")


class Task(Protocol):
    """What the training loop and the estimator expect of a task."""

    out_channels: int
    """Number of output channels of the model."""
    metric: str
    """Name of the metric that selects the best epoch."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics of the task by name."""

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        """Returns the loss, summed over nodes."""

    def scores(self, logits: Tensor) -> Tensor:
        """Returns the scores of each node, such as probabilities. Shape: ``(N, out_channels)``."""

    def predict(self, logits: Tensor) -> Tensor:
        """Returns the prediction for each node. Shape: ``(N,)``."""

    def measure(
        self, logits: Tensor, y: Tensor, names: Iterable[str] | None = None
    ) -> dict[str, float]:
        """Returns the values of some metrics (default: all) by name."""


class Classification:
    """Classification of nodes with the cross-entropy loss.

    Args:
        classes: Number of classes.
        metric: Name of the metric that selects the best epoch.
    """

    metrics: Mapping[str, Metric] = METRICS

    def __init__(self, classes: int, metric: str = "accuracy") -> None:
        self.out_channels = classes
        self.metric = metric

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(logits, y, reduction="sum")

    def scores(self, logits: Tensor) -> Tensor:
        return logits.softmax(dim=1)

    def predict(self, logits: Tensor) -> Tensor:
        return logits.argmax(dim=1)

    def measure(
        self, logits: Tensor, y: Tensor, names: Iterable[str] | None = None
    ) -> dict[str, float]:
        logits, y = logits.detach().cpu(), y.cpu()
        values = {}
        for name in self.metrics if names is None else names:
            metric = self.metrics[name]
            scores = self.scores(logits.double()) if metric.probabilities else logits
            try:
                values[name] = metric.value(name, scores, y)
            except Exception as error:
                if names is not None:
                    raise
                # A finished training is not lost over a metric that did not select it.
                log.warning("metric %r is left out: %s", name, error)
        return values
