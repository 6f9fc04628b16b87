"""Operations on the edges of a graph, from which attention over neighbors is built.

Edges are given in CSR format: the edges of node ``i`` are ``crow[i]`` to ``crow[i + 1]``, and edge
``e`` comes from node ``col[e]``. On the CPU, every sum is computed by one thread in the order of
the edges, so that results do not depend on the number of threads.

Axis letters: N nodes, E edges, H heads, C channels.
"""

import functools

import torch
from torch import Tensor

from dgt.ops import checks
from dgt.ops.checks import check, real
from dgt.ops.edges import operators

__all__ = ["additive", "aggregate", "directional", "gather", "products", "softmax", "total"]


def aggregate(crow: Tensor, col: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    r"""Computes the weighted sums :math:`\sum_{j \in N(i)} w_{ij} \mathbf{v}_j`.

    Args:
        crow: Row pointers, int64. Shape: ``(N + 1,)``.
        col: Column indices, int64. Shape: ``(E,)``.
        weights: Weight of each edge and head. Shape: ``(E, H)``.
        values: Values of the nodes. Shape: ``(N', H, C)``.

    Returns:
        Shape: ``(N, H, C)``.
    """
    return operators.aggregate(crow, col, weights, values)


def products(crow: Tensor, col: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    r"""Computes the scores :math:`\mathbf{q}_i^\top \mathbf{k}_j` of every edge.

    Args:
        crow: Row pointers, int64. Shape: ``(N + 1,)``.
        col: Column indices, int64. Shape: ``(E,)``.
        queries: Shape: ``(N, H, C)``.
        keys: Shape: ``(N', H, C)``.

    Returns:
        Shape: ``(E, H)``.
    """
    return operators.products(crow, col, queries, keys)


def additive(
    crow: Tensor, col: Tensor, targets: Tensor, sources: Tensor, a: Tensor, slope: float
) -> Tensor:
    r"""Computes the scores :math:`\mathbf{a}^\top \mathrm{LeakyReLU}(\mathbf{t}_i + \mathbf{s}_j)`
    of every edge.

    Args:
        crow: Row pointers, int64. Shape: ``(N + 1,)``.
        col: Column indices, int64. Shape: ``(E,)``.
        targets: Shape: ``(N, H, C)``.
        sources: Shape: ``(N', H, C)``.
        a: Shape: ``(H, C)``.
        slope: Negative slope of LeakyReLU.

    Returns:
        Shape: ``(E, H)``.
    """
    return operators.additive(crow, col, targets, sources, a, slope)


def directional(crow: Tensor, col: Tensor, places: Tensor, kernels: Tensor, near: float) -> Tensor:
    r"""Computes the scores :math:`\mathbf{k}_{ih}^\top \mathbf{r}_{ij}` of every edge, where
    :math:`\mathbf{r}_{ij} = [(\mathbf{p}_j - \mathbf{p}_i) / \|\mathbf{p}_j - \mathbf{p}_i\|
    \,\|\, \mathbb{1}[i = j]]`.

    Args:
        crow: Row pointers, int64. Shape: ``(N + 1,)``.
        col: Column indices, int64. Shape: ``(E,)``.
        places: The places :math:`\mathbf{p}` of the nodes. Shape: ``(N, C)``.
        kernels: The kernel vectors :math:`\mathbf{k}` of Deformable GCN. Shape: ``(N, H, C + 1)``.
        near: Places closer than this have no direction, and get no gradient through it.

    Returns:
        Shape: ``(E, H)``.
    """
    return operators.directional(crow, col, places, kernels, near)


def softmax(crow: Tensor, scores: Tensor) -> Tensor:
    """Computes the softmax of scores ``(E, H)`` over the edges of each node."""
    return operators.softmax(crow, scores)


def gather(rows: Tensor, index: Tensor) -> Tensor:
    """Computes ``rows[index]`` of a matrix ``(N, C)``. Unlike PyTorch's, the gradient is fast and
    does not depend on the number of threads."""
    check("edges.gather", rows=(rows, real("N C")), index=(index, checks.index("E", below="N")))
    each = torch.arange(len(index) + 1, device=index.device)
    return operators.aggregate(each, index, rows.new_ones(len(index), 1), rows[:, None])[:, 0]


def total(x: Tensor, dim: int) -> Tensor:
    """Sums over a short dimension other than the last, in order: the last bits of PyTorch's sum
    depend on the number of threads."""
    return functools.reduce(torch.add, x.unbind(dim))
