"""Operations on edges and their gradients in plain PyTorch: gather a row per edge, then sum."""

import torch
import torch.nn.functional as F
from torch import Tensor


def targets_of(crow: Tensor, col: Tensor) -> Tensor:
    """Returns the target node of each edge. Shape: ``(E,)``."""
    nodes = torch.arange(crow.numel() - 1, device=crow.device)
    return nodes.repeat_interleave(crow.diff(), output_size=col.size(0))


def sum_rows(index: Tensor, rows: Tensor, count: int) -> Tensor:
    """Sums the rows with equal index; the output has ``count`` rows."""
    out = rows.new_zeros(count, *rows.shape[1:])
    # Unlike index_add and scatter_add, this is deterministic on GPUs.
    return out.index_put((index,), rows, accumulate=True)


def aggregate(crow: Tensor, col: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    return sum_rows(targets_of(crow, col), weights[..., None] * values[col], crow.numel() - 1)


def aggregate_back(crow: Tensor, col: Tensor, weights: Tensor, grad: Tensor, nodes: int) -> Tensor:
    """Computes the gradient of ``values``: sums against the direction of the edges."""
    return sum_rows(col, weights[..., None] * grad[targets_of(crow, col)], nodes)


def products(crow: Tensor, col: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    return (queries[targets_of(crow, col)] * keys[col]).sum(-1)


def additive(
    crow: Tensor, col: Tensor, targets: Tensor, sources: Tensor, a: Tensor, slope: float
) -> Tensor:
    z = targets[targets_of(crow, col)] + sources[col]
    return (a * F.leaky_relu(z, slope)).sum(-1)


def additive_backward(
    grad: Tensor,
    crow: Tensor,
    col: Tensor,
    targets: Tensor,
    sources: Tensor,
    a: Tensor,
    slope: float,
) -> tuple[Tensor, Tensor, Tensor]:
    row = targets_of(crow, col)
    z = targets[row] + sources[col]  # (E, H, C)
    grad_leaky = grad[..., None] * torch.ones_like(z).where(z > 0, slope)
    grad_z = grad_leaky * a
    return (
        sum_rows(row, grad_z, targets.size(0)),
        sum_rows(col, grad_z, sources.size(0)),
        (grad_leaky * z).sum(0),
    )


def _directions(
    crow: Tensor, col: Tensor, places: Tensor, near: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Returns the target, unit vector and distance of each edge, and whether it is a self-loop.
    Places closer than ``near`` have no direction and an infinite distance."""
    row = targets_of(crow, col)
    steps = places[col] - places[row]
    # The norm has no gradient at zero; close places must not get one.
    squares = steps.square().sum(-1, keepdim=True)
    is_near = squares.detach().sqrt() < near
    apart = squares.where(~is_near, 1).sqrt().where(~is_near, torch.inf)  # (E, 1)
    return row, steps / apart, apart, (row == col).to(places.dtype)


def directional(crow: Tensor, col: Tensor, places: Tensor, kernels: Tensor, near: float) -> Tensor:
    row, u, _, itself = _directions(crow, col, places, near)
    relation = torch.cat([u, itself[:, None]], dim=1)  # (E, C + 1)
    return (kernels[row] * relation[:, None]).sum(-1)


def directional_backward(
    grad: Tensor, crow: Tensor, col: Tensor, places: Tensor, kernels: Tensor, near: float
) -> tuple[Tensor, Tensor]:
    row, u, apart, itself = _directions(crow, col, places, near)
    relation = torch.cat([u, itself[:, None]], dim=1)
    grad_kernels = sum_rows(row, grad[..., None] * relation[:, None], kernels.size(0))
    grad_u = (grad[..., None] * kernels[row][..., :-1]).sum(1)  # (E, C)
    # A step along the direction does not change the direction.
    along = (grad_u * u).sum(-1, keepdim=True)
    grad_steps = (grad_u - along * u) / apart
    N = places.size(0)
    return sum_rows(col, grad_steps, N) - sum_rows(row, grad_steps, N), grad_kernels


def softmax(crow: Tensor, scores: Tensor) -> Tensor:
    row, N = targets_of(crow, scores), crow.numel() - 1
    largest = scores.new_full((N, scores.size(1)), -torch.inf)
    at = row[:, None].expand_as(scores)
    largest = largest.scatter_reduce(0, at, scores.detach(), "amax")
    powers = (scores - largest[row]).exp()
    return powers / sum_rows(row, powers, N)[row]


def softmax_backward(crow: Tensor, weights: Tensor, grad: Tensor) -> Tensor:
    row = targets_of(crow, weights)
    along = sum_rows(row, weights * grad, crow.numel() - 1)
    return weights * (grad - along[row])
