"""Layer norm as the operators ``torch.ops.dgt.layer_norm`` and ``layer_norm_backward``."""

from typing import Any

from torch import Tensor

from dgt.ops.checks import real, statistics
from dgt.ops.define import define
from dgt.ops.half import statistics_type
from dgt.ops.norm import cpu, reference

layer_norm = define(
    "layer_norm",
    reference.layer_norm,
    fused=cpu.layer_norm,
    fake=lambda x: (x.new_empty(x.shape), x.new_empty(x.size(0), dtype=statistics_type(x))),
    takes={"x": real("N C")},
    positive="C",
    statistics=(1,),
)
layer_norm_backward = define(
    "layer_norm_backward",
    reference.layer_norm_backward,
    fused=cpu.layer_norm_backward,
    fake=lambda grad, out, scale: grad.new_empty(grad.shape),
    takes={"grad": real("N C"), "out": real("N C"), "scale": statistics("N")},
    positive="C",
)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*output)
    ctx.mark_non_differentiable(output[1])


def _autograd(ctx: Any, grad: Tensor, grad_scale: Tensor | None) -> Tensor:
    return layer_norm_backward(grad, *ctx.saved_tensors)


layer_norm.register_autograd(_autograd, setup_context=_setup_context)
