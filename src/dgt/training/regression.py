"""A number per node."""

import torch
import torch.nn.functional as F
from torch import Tensor

from dgt.training.task import Task


class Regression(Task):
    """Regression on nodes with the squared error.

    The model predicts the standardized number, so that its scale does not matter for training.

    Args:
        metric: Name of the metric that selects the best epoch.
        mean: Mean of the numbers of the training nodes.
        scale: Standard deviation of the numbers of the training nodes.
    """

    def __init__(self, metric: str = "mae", *, mean: float = 0.0, scale: float = 1.0) -> None:
        super().__init__("regression", 1, metric)
        self.mean = mean
        self.scale = scale

    def loss(self, logits: Tensor, y: Tensor) -> Tensor:
        target = ((y - self.mean) / self.scale).to(logits.dtype)
        return F.mse_loss(logits[:, 0], target, reduction="sum")

    def scores(self, logits: Tensor) -> Tensor:
        return logits.double() * self.scale + self.mean

    def predict(self, logits: Tensor) -> Tensor:
        return self.scores(logits)[:, 0]

    def constant(self, y: Tensor) -> Tensor:
        return torch.zeros(1)  # the mean, as numbers are standardized
