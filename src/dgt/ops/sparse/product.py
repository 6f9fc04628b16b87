"""The product of a sparse and a dense matrix as the operators ``torch.ops.dgt.csr_matmul``
and ``csr_matmul_backward``."""

from typing import Any

import torch
from torch import Tensor

from dgt.ops.checks import index, pointers, real, size
from dgt.ops.define import define
from dgt.ops.linear import is_wide, linear
from dgt.ops.sparse import cpu, reference


def matmul(A: Tensor, x: Tensor) -> Tensor:
    """Multiplies a matrix ``A``, dense or sparse (CSR), with a dense matrix ``x``. A sparse ``A``
    gets no gradient."""
    if A.layout != torch.sparse_csr:
        return linear(A, x)
    if x.dim() != 2 or A.dim() != 2 or A.size(1) != x.size(0):
        shapes = f"A {tuple(A.shape)}, x {tuple(x.shape)}"
        raise ValueError(f"matmul: shapes must agree as A (N, F), x (F, C); got {shapes}")
    return csr_matmul(A.crow_indices(), A.col_indices(), A.values(), x)


def csr_matmul(crow: Tensor, col: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    """Multiplies a CSR matrix, given by its parts, with a dense matrix.

    Args:
        crow: Row pointers, int64. Shape: ``(N + 1,)``.
        col: Column indices, int64. Shape: ``(E,)``.
        values: Stored values, which get no gradient. Shape: ``(E,)``.
        weight: Shape: ``(F, C)``.

    Returns:
        Shape: ``(N, C)``.
    """
    if is_wide(weight, values):
        return _csr_matmul.rounded(crow, col, values, weight)
    return _csr_matmul(crow, col, values, weight)


_parts = {"crow": pointers("N+1", end="E"), "col": index("E", below="F"), "values": real("E")}
_csr_matmul = define(
    "csr_matmul",
    reference.csr_matmul,
    fused=cpu.csr_matmul,
    fake=lambda crow, col, values, weight: weight.new_empty(crow.numel() - 1, weight.size(1)),
    takes={**_parts, "weight": real("F C")},
    autocast=torch.bfloat16,
)
_csr_matmul_backward = define(
    "csr_matmul_backward",
    reference.csr_matmul_backward,
    fused=cpu.csr_matmul_backward,
    fake=lambda crow, col, values, grad, in_channels: grad.new_empty(in_channels, grad.size(1)),
    takes={**_parts, "grad": real("N C"), "in_channels": size("F")},
)


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    crow, col, values, weight = inputs
    ctx.save_for_backward(crow, col, values)
    ctx.in_channels = weight.size(0)
    ctx.wide = is_wide(weight, values)


def _autograd(ctx: Any, grad: Tensor) -> tuple[None, None, None, Tensor]:
    # The stored values are features or encodings, which are not learned.
    crow, col, values = ctx.saved_tensors
    sum_up = cpu.csr_matmul_sum if ctx.wide and grad.is_cpu else _csr_matmul_backward
    return None, None, None, sum_up(crow, col, values, grad, ctx.in_channels)


_csr_matmul.register_autograd(_autograd, setup_context=_setup_context)
