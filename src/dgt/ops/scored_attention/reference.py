r"""Deformable attention with scores that see what is read, in plain PyTorch.

Axis letters as in ``dgt.ops.deformable_attention.reference``.
"""

import torch
from torch import Tensor, nn

from dgt.ops.checks import at_least, check_all, real, sequences_of
from dgt.ops.deformable_attention import reference as unscored
from dgt.ops.deformable_attention.reference import POSITIVE, Kernel

TAKES = {
    "values": real("N T M D"),
    "sequences": sequences_of("T Q L", nodes="N"),
    "closeness": real("T Q L"),
    "query": real("Q 2 T M K"),
    "probe": real("Q T M D+1"),
}
"""What the attention takes."""
SKIP = at_least(0)
"""How many positions it may skip."""


def scored_attention(
    values: Tensor,
    sequences: Tensor,
    closeness: Tensor,
    query: Tensor,
    probe: Tensor,
    kernel: Kernel,
    skip: int = 0,
) -> Tensor:
    r"""Computes deformable attention whose weights also depend on the nodes that are read:

    .. math::
        \sum_i \hat{w}_{\pi mqi} \, \mathbf{v}_{\pi m, S_{\pi q}[i]}, \qquad
        \hat{w}_{\pi mqi} \propto w_{\pi mqi} \exp \left( \mathbf{u}_{\pi mq}^\top
        \mathbf{v}_{\pi m, S_{\pi q}[i]} + b_{\pi mq} \, c_{\pi qi} \right)

    where :math:`w_i = \sum_k \mathbf{A}_k \cdot g(\Delta p_k, i)` is the weight that
    :func:`~dgt.ops.deformable_attention.reference.deformable_attention` gives to position
    :math:`i`, and :math:`\sum_i \hat{w}_i = 1`. The keys say where to look; the scores can reject
    what is found there. With :math:`\mathbf{u} = 0`, :math:`b = 0` and a normalized kernel, both
    are the same.

    Args:
        values: Values of the nodes for each criterion and head. Shape: ``(N, T, M, D)``.
        sequences: Node indices, int32, padded at the end with -1. Shape: ``(T, Q, L)``.
        closeness: The score :math:`c` that the criterion gives each node of a sequence. It gets no
            gradient. Shape: ``(T, Q, L)``.
        query: As for ``deformable_attention``. Shape: ``(Q, 2, T, M, K)``.
        probe: :math:`\mathbf{u}` and, last, :math:`b`. Shape: ``(Q, T, M, D + 1)``.
        kernel: The interpolation kernel.
        skip: Number of positions at the start of the sequences that are left out, as if the
            sequences started later.

    Returns:
        Shape: ``(Q, T, M, D)``.
    """
    inputs = (values, sequences, closeness, query, probe)
    weights = position_weights(*inputs, kernel, skip)
    outs = [
        torch.einsum("qml,qlmd->qmd", weights[:, t], _rows(values, sequence, t))
        for t, sequence in enumerate(sequences)
    ]
    return torch.stack(outs, dim=1)


def position_weights(
    values: Tensor,
    sequences: Tensor,
    closeness: Tensor,
    query: Tensor,
    probe: Tensor,
    kernel: Kernel,
    skip: int = 0,
) -> Tensor:
    r"""Computes the attention :math:`\hat{w}_i` on each position of the sequences.

    Returns:
        Shape: ``(Q, T, M, L)``.
    """
    inputs = (values, sequences, closeness, query, probe, skip)
    check_all("scored_attention", {**TAKES, "skip": SKIP}, inputs, POSITIVE)
    L = sequences.size(-1)
    sequences, closeness = _after(sequences, closeness, skip)
    w = unscored.position_weights(sequences, query, kernel)
    factors = [_factors(_rows(values, s, t), closeness[t], w[:, t], probe[:, t])
               for t, s in enumerate(sequences)]  # fmt: skip
    return nn.functional.pad(w * torch.stack(factors, dim=1), (skip, 0))[..., :L]


def _after(sequences: Tensor, closeness: Tensor, skip: int) -> tuple[Tensor, Tensor]:
    """Leaves out the first positions; of sequences that have no others, padding remains."""
    if skip < sequences.size(-1):
        return sequences[..., skip:], closeness[..., skip:]
    return torch.full_like(sequences[..., :1], -1), closeness[..., :1]


def _rows(values: Tensor, sequence: Tensor, t: int) -> Tensor:
    """Returns the values of the nodes in the sequences; of node 0 in the padding. Shape:
    ``(Q, L, M, D)``."""
    return values[sequence.long().clamp(min=0), t]


def _factors(rows: Tensor, closeness: Tensor, w: Tensor, probe: Tensor) -> Tensor:
    """Returns the factors by which the scores change the weights ``w``. Shape: ``(Q, M, L)``."""
    e = torch.einsum("qlmd,qmd->qml", rows, probe[..., :-1])
    e = (e + probe[..., -1:] * closeness.unsqueeze(1)).where(w != 0, -torch.inf)
    largest = e.detach().amax(-1, keepdim=True)
    factors = torch.exp(e - largest.where(largest > -torch.inf, 0))
    total = (w * factors).sum(-1, keepdim=True)
    return factors / total.where(total != 0, 1)


def scored_attention_backward(
    grad: Tensor,
    values: Tensor,
    sequences: Tensor,
    closeness: Tensor,
    query: Tensor,
    probe: Tensor,
    kernel: Kernel,
    skip: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Computes the gradients of ``values``, ``query`` and ``probe`` from the gradient ``grad`` of
    the output of :func:`scored_attention`."""
    sequences, closeness = _after(sequences, closeness, skip)
    unweighted = unscored.position_weights(sequences, query, kernel)
    grad_values, grad_probe = torch.zeros_like(values), torch.empty_like(probe)
    grad_weights = torch.empty_like(unweighted)
    heads = torch.arange(values.size(2), device=values.device)
    for t, sequence in enumerate(sequences):
        rows, w, upstream = _rows(values, sequence, t), unweighted[:, t], grad[:, t]
        factors = _factors(rows, closeness[t], w, probe[:, t])
        products = torch.einsum("qlmd,qmd->qml", rows, upstream)
        # The weights sum to 1, so that only differences matter. Those from the row with the largest
        # weight stay exact if there is nothing else.
        most = (w * factors).argmax(-1, keepdim=True)
        products = products - products.gather(-1, most)
        difference = products - (w * factors * products).sum(-1, keepdim=True)
        grad_weights[:, t] = factors * difference
        grad_e = w * grad_weights[:, t]
        grad_probe[:, t, :, :-1] = torch.einsum("qml,qlmd->qmd", grad_e, rows)
        grad_probe[:, t, :, -1] = (grad_e * closeness[t].unsqueeze(1)).sum(-1)
        change = torch.einsum("qml,qmd->qlmd", w * factors, upstream)
        change = change + torch.einsum("qml,qmd->qlmd", grad_e, probe[:, t, :, :-1])
        nodes = sequence.long().clamp(min=0).unsqueeze(-1)
        place = (nodes, torch.full_like(nodes, t), heads)
        # Unlike scatter_add, this is deterministic on GPUs.
        grad_values.index_put_(place, change, accumulate=True)
    grad_query = unscored.position_weights_backward(grad_weights, sequences, query, kernel)
    return grad_values, grad_query, grad_probe
