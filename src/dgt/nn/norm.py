"""Norms whose gradients have the same bits for any number of threads.

PyTorch's own layer and batch norm sum the gradients of their weights in an order that depends on
the number of threads. Here plain operations apply the weights, outside of the normalization. A norm
that a linear layer follows needs no weights, as the linear layer has its own: ``affine=False``.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class LayerNorm(nn.Module):
    r"""Each row scaled to mean 0 and variance 1, then, if ``affine``,
    :math:`\cdot \mathbf{w} + \mathbf{b}`."""

    def __init__(self, channels: int, *, affine: bool = True) -> None:
        super().__init__()
        self.channels = channels
        self.weight = nn.Parameter(torch.ones(channels)) if affine else None
        self.bias = nn.Parameter(torch.zeros(channels)) if affine else None

    def forward(self, x: Tensor) -> Tensor:
        out = F.layer_norm(x, (self.channels,))
        if self.weight is None or self.bias is None:
            return out
        return torch.addcmul(self.bias, out, self.weight)


class BatchNorm(nn.Module):
    r"""Each channel scaled to mean 0 and variance 1 over the nodes, then, if ``affine``,
    :math:`\cdot \mathbf{w} + \mathbf{b}`; in evaluation by the running mean and variance."""

    mean: Tensor
    variance: Tensor

    def __init__(
        self, channels: int, *, affine: bool = True, momentum: float = 0.1, eps: float = 1e-5
    ) -> None:
        super().__init__()
        self.momentum = momentum
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels)) if affine else None
        self.bias = nn.Parameter(torch.zeros(channels)) if affine else None
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("variance", torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        mean, variance = self.mean, self.variance
        if self.training:
            mean = x.sum(0) / x.size(0)
            variance = (x - mean).square().sum(0) / x.size(0)
            with torch.no_grad():
                self.mean.lerp_(mean, self.momentum)
                self.variance.lerp_(variance, self.momentum)
        scale = torch.rsqrt(variance + self.eps)
        if self.weight is None or self.bias is None:
            return (x - mean) * scale
        return torch.addcmul(self.bias, x - mean, self.weight * scale)


NORMS: dict[str, Callable[..., nn.Module]] = {
    "layer": LayerNorm,
    "batch": BatchNorm,
    "none": lambda channels, affine=True: nn.Identity(),
}
