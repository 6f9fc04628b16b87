"""Fused scored attention for the CPU: runs the loops of ``loops`` on all threads."""

from torch import Tensor

from dgt.ops.define import arrays
from dgt.ops.deformable_attention.cpu import check_found, loop_arguments, out_shape
from dgt.ops.memory import empty
from dgt.ops.scored_attention import loops
from dgt.system import threads


def forward(
    values: Tensor,
    sequences: Tensor,
    closeness: Tensor,
    query: Tensor,
    probe: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
    skip: int,
) -> Tensor:
    out = empty(out_shape(values, query), values.dtype)
    inputs = arrays(values, sequences, closeness, query, probe)
    tasks, rest = loop_arguments(values, query, bilinear, gamma, epsilon, normalize, planes=1)
    fine = threads.run(loops.forward, tasks, *inputs, skip, *rest, out.numpy().ravel())
    check_found(fine, "scored_attention", values, sequences)
    return out


def backward(
    grad: Tensor,
    values: Tensor,
    sequences: Tensor,
    closeness: Tensor,
    query: Tensor,
    probe: Tensor,
    bilinear: bool,
    gamma: float,
    epsilon: float,
    normalize: bool,
    skip: int,
) -> tuple[Tensor, Tensor, Tensor]:
    grads = [empty(x.shape, x.dtype) for x in (values, query, probe)]
    upstream, *inputs = arrays(grad, values, sequences, closeness, query, probe)
    tasks, rest = loop_arguments(values, query, bilinear, gamma, epsilon, normalize, planes=2)
    outs = arrays(*grads)
    fine = threads.run(loops.backward, tasks, *inputs, skip, *rest, upstream.ravel(), *outs)
    check_found(fine, "scored_attention_backward", values, sequences)
    return grads[0], grads[1], grads[2]
