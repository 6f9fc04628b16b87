"""The product of a sparse and a dense matrix in plain PyTorch."""

from torch import Tensor

from dgt.ops.edges.reference import sum_rows, targets_of


def csr_matmul(crow: Tensor, col: Tensor, values: Tensor, weight: Tensor) -> Tensor:
    return sum_rows(targets_of(crow, col), values[:, None] * weight[col], crow.numel() - 1)


def csr_matmul_backward(
    crow: Tensor, col: Tensor, values: Tensor, grad: Tensor, in_channels: int
) -> Tensor:
    return sum_rows(col, values[:, None] * grad[targets_of(crow, col)], in_channels)
