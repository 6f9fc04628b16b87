"""Norms, without weights of their own: each stands before a linear layer, which has them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numba import njit
from torch import Tensor, nn

from dgt import threads
from dgt.nn.memory import empty

EPS = 1e-5  # added to a variance, as in PyTorch


class LayerNorm(nn.Module):
    """Each row scaled to mean 0 and variance 1."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def forward(self, x: Tensor) -> Tensor:
        if x.is_cpu and x.dtype in (torch.float32, torch.float64):
            return _layer_norm(x)[0]
        return F.layer_norm(x, (self.channels,), eps=EPS)

    def extra_repr(self) -> str:
        return f"{self.channels}"


class BatchNorm(nn.Module):
    """Each channel scaled to mean 0 and variance 1 over the nodes; in evaluation by the running
    mean and variance. Sums over nodes are taken in an order that no number of threads changes."""

    mean: Tensor
    variance: Tensor

    def __init__(self, channels: int, *, momentum: float = 0.1) -> None:
        super().__init__()
        self.momentum = momentum
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
        return (x - mean) * torch.rsqrt(variance + EPS)


NORMS: dict[str, Callable[[int], nn.Module]] = {
    "layer": LayerNorm,
    "batch": BatchNorm,
    "none": lambda channels: nn.Identity(),
}


@torch.library.custom_op("dgt::layer_norm", mutates_args=(), device_types="cpu")
def _layer_norm(x: Tensor) -> tuple[Tensor, Tensor]:
    """The normalized rows, and what each was multiplied by."""
    out, scale = empty(x.shape, x.dtype), empty((x.size(0),), x.dtype)
    arrays = [t.detach().contiguous().numpy() for t in (x, out, scale)]
    threads.run(_normalize, _tasks(x), *arrays)
    return out, scale


@torch.library.custom_op("dgt::layer_norm_backward", mutates_args=(), device_types="cpu")
def _backward(grad: Tensor, out: Tensor, scale: Tensor) -> Tensor:
    result = empty(grad.shape, grad.dtype)
    arrays = [t.detach().contiguous().numpy() for t in (grad, out, scale, result)]
    threads.run(_gradient, _tasks(grad), *arrays)
    return result


def _tasks(x: Tensor) -> int:
    """Small tensors are not worth a second thread."""
    return 1 + x.numel() // 32768


@_layer_norm.register_fake
def _(x: Tensor) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), x.new_empty(x.size(0))


@_backward.register_fake
def _(grad: Tensor, out: Tensor, scale: Tensor) -> Tensor:
    return grad.new_empty(grad.shape)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*output)
    ctx.mark_non_differentiable(output[1])


def _autograd(ctx: Any, grad: Tensor, grad_scale: Tensor | None) -> Tensor:
    return _backward(grad, *ctx.saved_tensors)


_layer_norm.register_autograd(_autograd, setup_context=_setup_context)


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy", nogil=True)
def _normalize(thread: int, threads: int, x: Any, out: Any, scale: Any) -> None:
    N, C = x.shape
    real = x.dtype.type
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        mean = real(0)
        for c in range(C):
            mean += x[i, c]
        mean /= real(C)
        variance = real(0)
        for c in range(C):
            variance += (x[i, c] - mean) * (x[i, c] - mean)
        by = real(1) / np.sqrt(variance / real(C) + real(EPS))
        scale[i] = by
        for c in range(C):
            out[i, c] = (x[i, c] - mean) * by


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy", nogil=True)
def _gradient(thread: int, threads: int, grad: Any, out: Any, scale: Any, result: Any) -> None:
    N, C = grad.shape
    real = grad.dtype.type
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        mean, along = real(0), real(0)  # of the gradient, and of its product with the output
        for c in range(C):
            mean += grad[i, c]
            along += grad[i, c] * out[i, c]
        mean /= real(C)
        along /= real(C)
        for c in range(C):
            result[i, c] = (grad[i, c] - mean - out[i, c] * along) * scale[i]
