"""Operations on edges as operators: ``torch.ops.dgt.edge_aggregate`` and so on."""

from typing import Any

import torch
from torch import Tensor

from dgt.ops.checks import ANY, Takes, at_least, index, pointers, real, size
from dgt.ops.define import define
from dgt.ops.edges import cpu, reference


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Saves the inputs; for some operators, the last one is a number."""
    ctx.numbers = [x for x in inputs if not isinstance(x, Tensor)]
    ctx.save_for_backward(*(x for x in inputs if isinstance(x, Tensor)))


def _edges(below: str) -> dict[str, Takes]:
    """What operators take as the edges from the nodes of the axis ``below``."""
    return {"crow": pointers("N+1", end="E"), "col": index("E", below=below)}


# Weighted sums.

aggregate = define(
    "edge_aggregate",
    reference.aggregate,
    fused=cpu.aggregate,
    fake=lambda crow, col, weights, values: values.new_empty(crow.numel() - 1, *values.shape[1:]),
    takes={**_edges("N'"), "weights": real("E H"), "values": real("N' H C")},
    label="edges.aggregate",
    autocast=torch.bfloat16,
)
aggregate_back = define(
    "edge_aggregate_back",
    reference.aggregate_back,
    fused=cpu.aggregate_back,
    fake=lambda crow, col, weights, grad, nodes: grad.new_empty(nodes, *grad.shape[1:]),
    takes={**_edges("N'"), "weights": real("E H"), "grad": real("N H C"), "nodes": size("N'")},
)


def _aggregate_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    crow, col, weights, values = ctx.saved_tensors
    needs = ctx.needs_input_grad
    return (
        None,
        None,
        products(crow, col, grad, values) if needs[2] else None,
        aggregate_back(crow, col, weights, grad, values.size(0)) if needs[3] else None,
    )


aggregate.register_autograd(_aggregate_gradient, setup_context=_keep)

# Scores by products.

products = define(
    "edge_products",
    reference.products,
    fused=cpu.products,
    fake=lambda crow, col, queries, keys: queries.new_empty(col.numel(), queries.size(1)),
    takes={**_edges("N'"), "queries": real("N H C"), "keys": real("N' H C")},
    label="edges.products",
    autocast=torch.bfloat16,
)


def _products_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    crow, col, queries, keys = ctx.saved_tensors
    return (
        None,
        None,
        aggregate(crow, col, grad, keys),
        aggregate_back(crow, col, grad, queries, keys.size(0)),
    )


products.register_autograd(_products_gradient, setup_context=_keep)

# Scores by sums.

_added = {"targets": real("N H C"), "sources": real("N' H C"), "a": real("H C"), "slope": ANY}
additive = define(
    "edge_additive",
    reference.additive,
    fused=cpu.additive,
    fake=lambda crow, col, targets, *_: targets.new_empty(col.numel(), targets.size(1)),
    takes={**_edges("N'"), **_added},
    label="edges.additive",
    autocast=torch.bfloat16,
)
additive_backward = define(
    "edge_additive_backward",
    reference.additive_backward,
    fused=cpu.additive_backward,
    fake=lambda grad, crow, col, *inputs: tuple(torch.empty_like(x) for x in inputs[:3]),
    takes={"grad": real("E H"), **_edges("N'"), **_added},
)


def _additive_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, *additive_backward(grad, *ctx.saved_tensors, *ctx.numbers), None


additive.register_autograd(_additive_gradient, setup_context=_keep)

# Scores by directions.

_placed = {"places": real("N C"), "kernels": real("N H C+1"), "near": at_least(1e-30)}
directional = define(
    "edge_directional",
    reference.directional,
    fused=cpu.directional,
    fake=lambda crow, col, places, kernels, near: kernels.new_empty(col.numel(), kernels.size(1)),
    takes={**_edges("N"), **_placed},
    label="edges.directional",
    autocast=torch.float32,
)
directional_backward = define(
    "edge_directional_backward",
    reference.directional_backward,
    fused=cpu.directional_backward,
    fake=lambda grad, crow, col, *inputs: tuple(torch.empty_like(x) for x in inputs[:2]),
    takes={"grad": real("E H"), **_edges("N"), **_placed},
)


def _directional_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, None, *directional_backward(grad, *ctx.saved_tensors, *ctx.numbers), None


directional.register_autograd(_directional_gradient, setup_context=_keep)

# Softmax.

softmax = define(
    "edge_softmax",
    reference.softmax,
    fused=cpu.softmax,
    fake=lambda crow, scores: torch.empty_like(scores),
    takes={"crow": pointers("N+1", end="E"), "scores": real("E H")},
    label="edges.softmax",
    autocast=torch.float32,
)
softmax_backward = define(
    "edge_softmax_backward",
    reference.softmax_backward,
    fused=cpu.softmax_backward,
    fake=lambda crow, weights, grad: torch.empty_like(grad),
    takes={"crow": pointers("N+1", end="E"), "weights": real("E H"), "grad": real("E H")},
)


def _keep_weights(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)


def _softmax_gradient(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    return None, softmax_backward(*ctx.saved_tensors, grad)


softmax.register_autograd(_softmax_gradient, setup_context=_keep_weights)
