"""Graphormer."""

from collections.abc import Sequence
from typing import Any

import torch
from numba import njit
from torch import Tensor, nn

from dgt import threads
from dgt.baselines.transformer import Block
from dgt.nn import edges
from dgt.nn.dropout import Dropout
from dgt.nn.linear import Linear
from dgt.nn.memory import empty
from dgt.nn.norm import NORMS
from dgt.nn.sparse import SparseLinear

MAX_DEGREE = 511
MAX_DISTANCE = 20
"""Longer paths are as these; one more stands for no path."""


class Graphormer(nn.Module):
    r"""Graphormer from `"Do Transformers Really Perform Bad for Graph Representation?"
    <https://arxiv.org/abs/2106.05234>`_, without edge features:

    .. math::
        \mathbf{z}^{(0)}_i = \mathbf{W} \mathbf{x}_i + \mathbf{d}_{\deg(v_i)}, \qquad
        \mathbf{A}_{ij} = \frac{(\mathbf{Q} \mathbf{z}_i)^\top \mathbf{K} \mathbf{z}_j}{\sqrt{C/M}}
        + b_{\phi(v_i, v_j)}

    The centrality encoding :math:`\mathbf{d}` is learned for each degree, the bias :math:`b` for
    each length :math:`\phi` of the shortest path between two nodes and each head, the same in all
    blocks. Blocks are those of a Transformer, with the norm before each part.

    Args:
        in_channels: Number of features.
        hidden_channels: Channels C of every node.
        out_channels: Number of classes.
        blocks: Number of blocks.
        heads: Attention heads M.
        norm: ``"layer"``, ``"batch"`` or ``"none"``.
        mlp_ratio: Width of a block's MLP as a multiple of ``hidden_channels``.
        dropout: Dropout of hidden channels.
        input_dropout: Dropout of the features.
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        blocks: int = 1,
        heads: int = 4,
        norm: str = "layer",
        mlp_ratio: float = 1.0,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed = SparseLinear(in_channels, hidden_channels, dropout=input_dropout)
        self.centrality = nn.Parameter(0.02 * torch.randn(MAX_DEGREE + 1, hidden_channels))
        self.bias = nn.Parameter(0.02 * torch.randn(heads, MAX_DISTANCE + 2))
        self.blocks: Sequence[Block] = nn.ModuleList(  # type: ignore[assignment]
            Block(hidden_channels, heads=heads, norm=norm, mlp_ratio=mlp_ratio, dropout=dropout)
            for _ in range(blocks)
        )
        self.head = nn.Sequential(
            NORMS[norm](hidden_channels), Dropout(dropout), Linear(hidden_channels, out_channels)
        )

    def forward(
        self, x: Tensor, degrees: Tensor, distances: Tensor, *, nodes: Tensor | None = None
    ) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            degrees: Number of neighbours, int64. Shape: ``(N,)``.
            distances: Edges on the shortest paths, uint8, at most 20, and 21 for no path. Shape:
                ``(N, N)``.
            nodes: The nodes whose logits are wanted; the last block then works for them alone
                (default: all).
        """
        z = self._embedded(x, degrees)
        for block in self.blocks[:-1]:
            z = block(z, None, _bias(self.bias, distances))
        rows = distances if nodes is None else distances[nodes]
        return self.head(self.blocks[-1](z, nodes, _bias(self.bias, rows)))

    @torch.no_grad()
    def attention(
        self, x: Tensor, degrees: Tensor, distances: Tensor, *, nodes: Tensor | None = None
    ) -> Tensor:
        """The attention of the last block, of all nodes or of ``nodes``. Shape: ``(M, nodes, N)``.

        Call it in evaluation mode; in training, dropout changes it.
        """
        z = self._embedded(x, degrees)
        for block in self.blocks[:-1]:
            z = block(z, None, _bias(self.bias, distances))
        last = self.blocks[-1]
        rows = distances if nodes is None else distances[nodes]
        return last.attention.weights(last.norm(z), nodes, _bias(self.bias, rows))

    def _embedded(self, x: Tensor, degrees: Tensor) -> Tensor:
        return self.embed(x) + edges.gather(self.centrality, degrees.clamp(max=MAX_DEGREE))


@torch.library.custom_op("dgt::distance_bias", mutates_args=(), device_types="cpu")
def _bias(table: Tensor, distances: Tensor) -> Tensor:
    """The bias ``table[m, distances[i, j]]``. Shape: ``(M, N, N)``."""
    out = empty((table.size(0), *distances.shape), table.dtype)
    arrays = [t.detach().contiguous().numpy() for t in (table, distances, out)]
    threads.run(_look_up, distances.size(0), *arrays)
    return out


@torch.library.custom_op("dgt::distance_bias_backward", mutates_args=(), device_types="cpu")
def _bias_backward(grad: Tensor, distances: Tensor, values: int) -> Tensor:
    sums = torch.zeros(distances.size(0), grad.size(0), values, dtype=grad.dtype)
    arrays = [t.detach().contiguous().numpy() for t in (grad, distances, sums)]
    threads.run(_add_up, distances.size(0), *arrays)
    return sums.sum(0)


@_bias.register_fake
def _(table: Tensor, distances: Tensor) -> Tensor:
    return table.new_empty(table.size(0), *distances.shape)


@_bias_backward.register_fake
def _(grad: Tensor, distances: Tensor, values: int) -> Tensor:
    return grad.new_empty(grad.size(0), values)


def _setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
    ctx.save_for_backward(inputs[1])
    ctx.values = inputs[0].size(1)


def _autograd(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    return _bias_backward(grad, *ctx.saved_tensors, ctx.values), None


_bias.register_autograd(_autograd, setup_context=_setup_context)


@njit(cache=True, error_model="numpy", nogil=True)
def _look_up(thread: int, threads: int, table: Any, distances: Any, out: Any) -> None:
    M, Q, N = out.shape
    for i in range(thread * Q // threads, (thread + 1) * Q // threads):
        for m in range(M):
            for j in range(N):
                out[m, i, j] = table[m, distances[i, j]]


@njit(cache=True, error_model="numpy", nogil=True)
def _add_up(thread: int, threads: int, grad: Any, distances: Any, sums: Any) -> None:
    M, Q, N = grad.shape
    for i in range(thread * Q // threads, (thread + 1) * Q // threads):
        for m in range(M):
            for j in range(N):
                sums[i, m, distances[i, j]] += grad[m, i, j]
