"""Distance attention as the operators ``torch.ops.dgt.distance_attention`` and
``distance_attention_backward``."""

from typing import Any

import torch
from torch import Tensor

from dgt.ops.checks import codes, real, statistics
from dgt.ops.define import define
from dgt.ops.distance_attention import cpu, reference
from dgt.ops.half import statistics_type

TAKES = {
    "query": real("M Q D"),
    "key": real("M N D"),
    "value": real("M N D"),
    "bias": real("M V"),
    "distances": codes("Q N", below="V"),
}
POSITIVE = "M N D"


def _fake(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, distances: Tensor
) -> tuple[Tensor, Tensor]:
    dtype = statistics_type(query)
    return torch.empty_like(query), query.new_empty(*query.shape[:2], 1, dtype=dtype)


attention = define(
    "distance_attention",
    reference.attention,
    fused=cpu.attention,
    fake=_fake,
    takes=TAKES,
    positive=POSITIVE,
    autocast=torch.bfloat16,
    statistics=(1,),
)
attention_backward = define(
    "distance_attention_backward",
    reference.attention_backward,
    fused=cpu.attention_backward,
    fake=lambda grad, *inputs: [torch.empty_like(x) for x in inputs[:4]],
    takes={"grad": real("M Q D"), **TAKES, "out": real("M Q D"), "log_sum": statistics("M Q 1")},
    positive=POSITIVE,
)


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)
    ctx.mark_non_differentiable(output[1])


def _autograd(ctx: Any, grad: Tensor, _: Tensor | None) -> tuple[Tensor | None, ...]:
    return *attention_backward(grad.contiguous(), *ctx.saved_tensors), None


attention.register_autograd(_autograd, setup_context=_setup_context)
