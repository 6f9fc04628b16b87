"""A small classification problem and two models for it, independent of DGT."""

import numpy as np
import torch
from torch import Tensor, nn

from dgt.training.task import Classification

N, F, CLASSES = 60, 8, 3
TASK = Classification(CLASSES)


class Net(nn.Module):
    """Has dropout, to depend on random numbers, and a batch norm, to have buffers."""

    def __init__(self, stop_after: int | None = None) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(F, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, CLASSES)
        )
        self.stop_after = stop_after

    def forward(self, x: Tensor, nodes: Tensor | None = None) -> Tensor:
        if self.stop_after is not None and self.training:
            if self.stop_after == 0:
                raise KeyboardInterrupt
            self.stop_after -= 1
        return self.layers(x if nodes is None else x[nodes])


class Linear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(F, CLASSES))

    def forward(self, x: Tensor, nodes: Tensor | None = None) -> Tensor:
        return (x if nodes is None else x[nodes]) @ self.weight


def net(stop_after: int | None = None) -> Net:
    torch.manual_seed(3)
    return Net(stop_after)


def make_problem() -> tuple[dict[str, Tensor], Tensor, Tensor, Tensor]:
    """Returns inputs, labels, training mask and validation mask."""
    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.integers(0, CLASSES, N))
    centers = rng.normal(size=(CLASSES, F))
    x = torch.from_numpy(centers[y] + rng.normal(scale=1.0, size=(N, F))).float()
    part = torch.arange(N) % 3
    return {"x": x}, y, part == 0, part == 1
