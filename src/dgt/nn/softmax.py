"""Softmax whose gradient has the same bits for any number of threads, which PyTorch's has not."""

from typing import Any

import torch
from numba import njit
from torch import Tensor

from dgt import threads
from dgt.nn.memory import empty


def softmax(x: Tensor) -> Tensor:
    """The softmax over the last dimension."""
    return _softmax(x)


@torch.library.custom_op("dgt::softmax", mutates_args=(), device_types="cpu")
def _softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, dim=-1)


@torch.library.custom_op("dgt::softmax_backward", mutates_args=(), device_types="cpu")
def _backward(grad: Tensor, out: Tensor) -> Tensor:
    result = empty(tuple(out.shape), out.dtype)
    rows = [t.detach().contiguous().numpy().reshape(-1, out.size(-1)) for t in (grad, out, result)]
    threads.run(_gradient, 1 + out.numel() // 32768, *rows)
    return result


@_softmax.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)


@_backward.register_fake
def _(grad: Tensor, out: Tensor) -> Tensor:
    return torch.empty_like(out)


def _setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(output)


def _autograd(ctx: Any, grad: Tensor) -> Tensor:
    return _backward(grad, *ctx.saved_tensors)


_softmax.register_autograd(_autograd, setup_context=_setup_context)


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"}, error_model="numpy", nogil=True)
def _gradient(thread: int, threads: int, grad: Any, out: Any, result: Any) -> None:
    N, C = out.shape
    for i in range(thread * N // threads, (thread + 1) * N // threads):
        along = out.dtype.type(0)
        for c in range(C):
            along += out[i, c] * grad[i, c]
        for c in range(C):
            result[i, c] = out[i, c] * (grad[i, c] - along)
