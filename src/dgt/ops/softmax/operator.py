"""Softmax as the operators ``torch.ops.dgt.softmax`` and ``softmax_backward``."""

from typing import Any

import torch
from torch import Tensor

from dgt.ops.checks import real
from dgt.ops.define import define
from dgt.ops.softmax import cpu, reference

# The forward pass of PyTorch does not depend on the number of threads.
softmax_operator = define(
    "softmax",
    reference.softmax,
    fused=reference.softmax,
    fake=torch.empty_like,
    takes={"x": real("... C")},
    autocast=torch.float32,
)
softmax_backward = define(
    "softmax_backward",
    reference.softmax_backward,
    fused=cpu.softmax_backward,
    fake=lambda grad, out: torch.empty_like(out),
    takes={"grad": real("... C"), "out": real("... C")},
)


def _setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
    ctx.save_for_backward(output)


def _autograd(ctx: Any, grad: Tensor) -> Tensor:
    return softmax_backward(grad, *ctx.saved_tensors)


softmax_operator.register_autograd(_autograd, setup_context=_setup_context)
