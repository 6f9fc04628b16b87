"""FLOPs as the paper counts them: multiply-adds of one forward pass over the whole graph."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

# Imported to register the operators in torch.ops.dgt.
from dgt.ops import (  # noqa: F401
    deformable_attention,
    distance_attention,
    edges,
    linear,
    scored_attention,
    sparse,
)

Shape = tuple[int, ...]


def multiply_adds(model: nn.Module, inputs: Mapping[str, Tensor | None]) -> int:
    """Counts the multiply-adds of ``model(**inputs)`` in evaluation mode.

    PyTorch's counter covers matrix products. Formulas are added for our own operators and for
    attention on the CPU. A sparse product counts its stored values. As in the paper, gathers,
    norms, softmax and all other elementwise operations are not counted, and the features ``x``
    count as dense.

    Args:
        model: The model.
        inputs: Its inputs; may be fake tensors, which take no memory.
    """
    from torch.utils.flop_counter import FlopCounterMode

    device = next(model.parameters()).device
    inputs = {name: x if x is None else x.to(device) for name, x in inputs.items()}
    x = inputs.get("x")
    if x is not None and x.layout == torch.sparse_csr:
        inputs = {**inputs, "x": x.to_dense()}
    model.eval()
    with torch.no_grad(), FlopCounterMode(display=False, custom_mapping=_FORMULAS) as counter:
        model(**inputs)
    return counter.get_total_flops() // 2


def _linear(x: Shape, weight: Shape, *_: Any, **__: Any) -> int:
    return 2 * x[0] * math.prod(weight)


def _csr_matmul(crow: Shape, col: Shape, values: Shape, weight: Shape, **_: Any) -> int:
    return 2 * values[0] * weight[1]


def _edges(crow: Shape, col: Shape, first: Shape, values: Shape, *_: Any, **__: Any) -> int:
    return 2 * col[0] * math.prod(values[1:])


def _deformable_attention(
    values: Shape,
    sequences: Shape,
    query: Shape,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    *_: Any,
    **__: Any,
) -> int:
    """The paper's W·N·K·C·T: every key of every head sums over the W nodes of its window."""
    Q, T, M, K = query[0], *query[2:]
    W = min(2 if bilinear else 2 * math.ceil(epsilon), sequences[2])
    return 2 * Q * T * M * K * W * values[3]


def _scored_attention(
    values: Shape,
    sequences: Shape,
    closeness: Shape,
    query: Shape,
    probe: Shape,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
    skip: int,
    **_: Any,
) -> int:
    """The windows of the keys overlap: each position that they cover is read twice, for its score
    and for its value."""
    Q, T, M, K = query[0], *query[2:]
    W = 2 if bilinear else 2 * math.ceil(epsilon)
    return 2 * Q * T * M * min(K * W, sequences[2] - skip) * 2 * values[3]


def _attention(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    *batch, queries, channels = query
    return 2 * math.prod(batch) * queries * key[-2] * (channels + value[-1])


_FORMULAS: dict[Any, Callable[..., int]] = {
    torch.ops.dgt.linear: _linear,
    torch.ops.dgt.csr_matmul: _csr_matmul,
    torch.ops.dgt.edge_products: _edges,
    torch.ops.dgt.edge_aggregate: _edges,
    torch.ops.dgt.edge_additive: _edges,
    torch.ops.dgt.edge_directional: _edges,
    torch.ops.dgt.deformable_attention: _deformable_attention,
    torch.ops.dgt.scored_attention: _scored_attention,
    torch.ops.dgt.distance_attention: _attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: _attention,
}
