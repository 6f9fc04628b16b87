"""Norms without learnable weights, as each of them is followed by a linear layer."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from dgt.ops.checks import Check, check, real
from dgt.ops.half import HALF
from dgt.ops.norm.operator import layer_norm
from dgt.ops.norm.reference import EPS

__all__ = ["NORMS", "BatchNorm", "LayerNorm"]


class LayerNorm(nn.Module):
    """Normalizes each row to mean 0 and variance 1."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels
        self._check = Check("LayerNorm", {"x": real(f"N {channels}")})

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1:] != (self.channels,):
            self._check((x,))  # raises; the operator checks the rest
        return layer_norm(x)[0]

    def extra_repr(self) -> str:
        return f"{self.channels}"


class BatchNorm(nn.Module):
    """Normalizes each channel to mean 0 and variance 1 over the nodes; in evaluation mode, by the
    running mean and variance. The result does not depend on the number of threads."""

    mean: Tensor
    variance: Tensor

    def __init__(self, channels: int, *, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        mean, variance = self.mean, self.variance
        takes = {"x": (x, real("N C")), "mean": (mean, real("C"))}
        check("BatchNorm", **takes, variance=(variance, real("C")))
        if self.training and x.dtype in HALF:
            # Layer norm of the transpose keeps the statistics in single precision, and only the
            # output for the backward pass.
            out, scale = layer_norm(x.t())
            self._update(x.detach().float().sum(0) / x.size(0), scale**-2 - EPS)
            return out.t()
        if self.training:
            mean = x.sum(0) / x.size(0)
            variance = (x - mean).square().sum(0) / x.size(0)
            self._update(mean, variance)
        return ((x - mean) * torch.rsqrt(variance + EPS)).to(x.dtype)

    @torch.no_grad()
    def _update(self, mean: Tensor, variance: Tensor) -> None:
        self.mean.lerp_(mean, self.momentum)
        self.variance.lerp_(variance, self.momentum)


NORMS: dict[str, Callable[[int], nn.Module]] = {
    "layer": LayerNorm,
    "batch": BatchNorm,
    "none": lambda channels: nn.Identity(),
}
