"""Fused scored attention for the CPU: runs the loops of ``loops`` on all threads."""

import torch
from torch import Tensor

from dgt.ops.define import arrays
from dgt.ops.deformable_attention.cpu import check_found, loop_arguments, out_shape, room_for_sums
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
    tasks, rest = loop_arguments(values, query, bilinear, gamma, epsilon, normalize)
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
    *,
    wide: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the gradients of values, queries and probes; if ``wide``, that of values in double
    precision."""
    kinds = (values, torch.double if wide else values.dtype), (query, query.dtype)
    grads = [empty(x.shape, kind) for x, kind in (*kinds, (probe, probe.dtype))]
    upstream, *inputs = arrays(grad, values, sequences, closeness, query, probe)
    tasks, rest = loop_arguments(values, query, bilinear, gamma, epsilon, normalize)
    outs = arrays(*grads)
    totals = room_for_sums(values, query, wide)
    fine = threads.run(loops.backward, tasks, *inputs, skip, *rest, totals, upstream.ravel(), *outs)
    check_found(fine, "scored_attention_backward", values, sequences)
    return grads[0], grads[1], grads[2]
