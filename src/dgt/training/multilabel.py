"""Several labels per node, each of which applies or not."""

import torch.nn.functional as F
from torch import Tensor

from dgt.training.task import Task


class MultiLabel(Task):
    """Classification with several labels per node, with the binary cross-entropy of each label.

    Args:
        labels: Number of labels.
        metric: Name of the metric that selects the best epoch.
    """

    def __init__(self, labels: int, metric: str = "f1") -> None:
        super().__init__("multilabel", labels, metric)

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        each = F.binary_cross_entropy_with_logits(logits, y.to(logits.dtype), reduction="none")
        return each.mean(dim=1).sum()

    def scores(self, logits: Tensor) -> Tensor:
        return logits.sigmoid()

    def predict(self, logits: Tensor) -> Tensor:
        """Returns 1 for each label with a probability of at least one half. Shape: ``(N, C)``."""
        return (self.scores(logits.double()) >= 0.5).long()

    def constant(self, y: Tensor) -> Tensor:
        # One node more with and without each label, so that both stay possible.
        return ((y.sum(dim=0) + 1) / (len(y) + 2)).logit()
