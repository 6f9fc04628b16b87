r"""Deformable attention in plain PyTorch: the readable reference.

Axis letters: N nodes, Q queries (all nodes, or some of them), T criteria, M heads, K keys,
L length of a sequence, W window of the kernel, D channels of a head.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from dgt.config import ModelConfig
from dgt.ops.checks import check_all, real, sequences_of

TAKES = {
    "values": real("N T M D"),
    "sequences": sequences_of("T Q L", nodes="N"),
    "query": real("Q 2 T M K"),
}
"""What deformable attention takes."""
POSITIVE = "T M K L D"
"""The axes that must not have size 0."""


@dataclass(frozen=True)
class Kernel:
    r"""The interpolation kernel, the weight of position :math:`i` for a key at position :math:`p`:

    .. math::
        g(p, i) = \begin{cases}
            \exp\left(-(p - i)^2 / \gamma\right) & \text{if } |p - i| < \epsilon \\
            0 & \text{otherwise}
        \end{cases}

    or, for bilinear interpolation, :math:`g(p, i) = \max(0, 1 - |p - i|)`.

    Args:
        interpolation: ``"rbf"`` or ``"bilinear"``.
        gamma: Bandwidth of the rbf kernel.
        epsilon: Half width at which the rbf kernel is cut off.
        normalize: Whether to divide the weights of a key by their sum.
    """

    interpolation: Literal["rbf", "bilinear"] = ModelConfig.interpolation
    gamma: float = ModelConfig.gamma
    epsilon: float = ModelConfig.epsilon
    normalize: bool = ModelConfig.normalize

    def __post_init__(self) -> None:
        if self.interpolation not in ("rbf", "bilinear"):
            raise ValueError(
                f"interpolation must be 'rbf' or 'bilinear', got {self.interpolation!r}"
            )
        if not self.gamma >= 0.1:
            raise ValueError(f"gamma must be at least 0.1, got {self.gamma}")
        if not self.epsilon >= 1:
            raise ValueError(f"epsilon must be at least 1, got {self.epsilon}")

    @property
    def half_width(self) -> float:
        return self.epsilon if self.interpolation == "rbf" else 1.0

    def __call__(self, distance: Tensor) -> Tensor:
        """Returns the unnormalized weights at the signed distances ``p - i``."""
        if self.interpolation == "rbf":
            g = torch.exp(-distance.square() / self.gamma)
        else:
            g = 1 - distance.abs()
        return g.where(distance.abs() < self.half_width, 0)

    def derivative(self, distance: Tensor) -> Tensor:
        """Returns the derivative of the weights with respect to ``p``."""
        if self.interpolation == "rbf":
            return self(distance) * (-2 / self.gamma) * distance
        return -distance.sign().where(distance.abs() < self.half_width, 0)


def sequence_lengths(sequences: Tensor) -> Tensor:
    """Returns the number n of nodes before the padding.

    Args:
        sequences: Node indices, padded at the end with -1. Shape: ``(T, Q, L)``.

    Returns:
        Shape: ``(T, Q)``.
    """
    return (sequences >= 0).sum(-1)


def key_windows(
    sequence: Tensor, offsets: Tensor, attention: Tensor, kernel: Kernel
) -> tuple[Tensor, Tensor]:
    r"""Returns the positions that the keys of one criterion read, and the weight
    :math:`\mathbf{A}_{mqk} \cdot g(\Delta p_{mqk}, i)` of each.

    Returns:
        Positions, int64, clamped to the sequence, and weights, zero outside the sequence. Shapes:
        ``(Q, M, K, W)``.
    """
    i, inside, distance = _windows(sequence, offsets, kernel)
    g = kernel(distance).where(inside, 0)
    if kernel.normalize:
        total = g.sum(-1, keepdim=True)
        g = g / total.where(total != 0, 1)
    return i, attention.unsqueeze(-1) * g


def _windows(sequence: Tensor, offsets: Tensor, kernel: Kernel) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the positions around each key, clamped to the sequence, a mask of those inside the
    sequence, and the signed distance of the key from each. Shapes: ``(Q, M, K, W)``."""
    n = sequence_lengths(sequence).view(-1, 1, 1)  # (Q, 1, 1)
    p = offsets * (n - 1)  # (Q, M, K)
    reach = math.ceil(kernel.half_width)
    steps = torch.arange(1 - reach, 1 + reach, device=p.device)
    i = p.detach().floor().long().unsqueeze(-1) + steps
    inside = (i >= 0) & (i < n.unsqueeze(-1))
    # Position 0 of an empty sequence has weight 0.
    return i.minimum(n.unsqueeze(-1) - 1).clamp(min=0), inside, p.unsqueeze(-1) - i


def _nodes(sequence: Tensor, i: Tensor) -> Tensor:
    """Returns the nodes at the positions ``i``; node 0 for an empty sequence."""
    return sequence.long().gather(1, i.flatten(1)).view_as(i).clamp(min=0)


def sample(query: Tensor) -> tuple[Tensor, Tensor]:
    r"""Computes the positions of the keys and their attention.

    Args:
        query: A linear function of the queries. Shape: ``(Q, 2, T, M, K)``.

    Returns:
        The offsets :math:`o = \mathrm{sigmoid}(query_0)`, as a share of the sequence, and the
        attention :math:`\mathbf{A} = \mathrm{softmax}_k(query_1)`. Shapes: ``(Q, T, M, K)``.
    """
    return torch.sigmoid(query[:, 0]), torch.softmax(query[:, 1], dim=-1)


def deformable_attention(
    values: Tensor, sequences: Tensor, query: Tensor, kernel: Kernel
) -> Tensor:
    r"""Computes the inner sums of Deformable Graph Attention for every query, criterion and head:

    .. math::
        \sum_{k=1}^K \mathbf{A}_{\pi mqk} \sum_i g(\Delta p_{\pi mqk}, i) \cdot
        \mathbf{v}_{\pi m, S_{\pi q}[i]}, \qquad \Delta p_{\pi mqk} = (n_{\pi q} - 1) \, o_{\pi mqk}

    where :math:`S_{\pi q}` is the sequence of query :math:`q` by criterion :math:`\pi`,
    :math:`n_{\pi q}` the number of nodes in it, :math:`\mathbf{v} = \mathbf{W}' \mathbf{z}` the
    values, and :math:`o` and :math:`\mathbf{A}` come from :func:`sample`. As the offsets are a
    share of the sequence, no key can lie in the padding.

    Args:
        values: Values of the nodes for each criterion and head. Shape: ``(N, T, M, D)``.
        sequences: Node indices, int32, padded at the end with -1. Shape: ``(T, Q, L)``.
        query: Input of :func:`sample`. Shape: ``(Q, 2, T, M, K)``.
        kernel: The interpolation kernel.

    Returns:
        Shape: ``(Q, T, M, D)``.
    """
    check_all("deformable_attention", TAKES, (values, sequences, query), POSITIVE)
    offsets, attention = sample(query)
    heads = torch.arange(values.size(2), device=values.device).view(1, -1, 1, 1)
    outs = []
    for t, sequence in enumerate(sequences):
        i, w = key_windows(sequence, offsets[:, t], attention[:, t], kernel)  # (Q, M, K, W)
        nodes = _nodes(sequence, i)
        rows = values[nodes, t, heads]  # (Q, M, K, W, D)
        outs.append(torch.einsum("qmkw,qmkwd->qmd", w, rows))
    return torch.stack(outs, dim=1)


def deformable_attention_backward(
    grad: Tensor, values: Tensor, sequences: Tensor, query: Tensor, kernel: Kernel
) -> tuple[Tensor, Tensor]:
    """Computes the gradients of ``values`` and ``query`` from the gradient ``grad`` of the output
    of :func:`deformable_attention`."""
    offsets, attention = sample(query)
    heads = torch.arange(values.size(2), device=values.device).view(1, -1, 1, 1)
    grad_values, grad_query = torch.zeros_like(values), torch.empty_like(query)
    for t, sequence in enumerate(sequences):
        a = attention[:, t]  # (Q, M, K)
        i, w = key_windows(sequence, offsets[:, t], a, kernel)  # (Q, M, K, W)
        nodes = _nodes(sequence, i)
        upstream = grad[:, t, :, None, None]  # (Q, M, 1, 1, D)
        place = (nodes, torch.full_like(nodes, t), heads.expand_as(nodes))
        # Unlike scatter_add, this is deterministic on GPUs.
        grad_values.index_put_(place, w.unsqueeze(-1) * upstream, accumulate=True)
        products = (values[nodes, t, heads] * upstream).sum(-1)  # (Q, M, K, W)
        grad_query[:, :, t] = _query_gradient(sequence, offsets[:, t], a, products, kernel)
    return grad_values, grad_query


def _query_gradient(
    sequence: Tensor, offsets: Tensor, attention: Tensor, grad: Tensor, kernel: Kernel
) -> Tensor:
    """Returns the gradient of the queries of one criterion, ``(Q, 2, M, K)``, from the gradient of
    the weight of each position of a window, ``(Q, M, K, W)``."""
    o, a = offsets, attention
    _, inside, distance = _windows(sequence, o, kernel)
    g = kernel(distance).where(inside, 0)
    slope = kernel.derivative(distance).where(inside, 0)
    total = g.sum(-1) if kernel.normalize else torch.ones_like(a)
    total = total.where(total != 0, 1)
    grad_a = (g * grad).sum(-1) / total
    grad_p = (slope * grad).sum(-1)
    if kernel.normalize:
        grad_p = (grad_p - grad_a * slope.sum(-1)) / total
    n = sequence_lengths(sequence).view(-1, 1, 1)
    positions = a * grad_p * (n - 1) * o * (1 - o)
    return torch.stack([positions, a * (grad_a - (a * grad_a).sum(-1, keepdim=True))], dim=1)


def position_weights(sequences: Tensor, query: Tensor, kernel: Kernel) -> Tensor:
    r"""Computes the attention on each position of the sequences,
    :math:`w_i = \sum_k \mathbf{A}_{\pi mqk} \cdot g(\Delta p_{\pi mqk}, i)`.

    Returns:
        Shape: ``(Q, T, M, L)``.
    """
    # The weights do not depend on the nodes themselves, only on the padding.
    takes = {"sequences": TAKES["sequences"]._replace(wrong=None), "query": TAKES["query"]}
    check_all("position_weights", takes, (sequences, query), "T M K L")
    offsets, attention = sample(query)
    Q, T, M, _ = offsets.shape
    weights = offsets.new_zeros(Q, T, M, sequences.size(2))
    for t, sequence in enumerate(sequences):
        i, w = key_windows(sequence, offsets[:, t], attention[:, t], kernel)
        weights[:, t].scatter_add_(2, i.flatten(2), w.flatten(2))
    return weights


def position_weights_backward(
    grad: Tensor, sequences: Tensor, query: Tensor, kernel: Kernel
) -> Tensor:
    """Computes the gradient of ``query`` from the gradient ``grad`` of the output of
    :func:`position_weights`."""
    offsets, attention = sample(query)
    grads = []
    for t, sequence in enumerate(sequences):
        o, a = offsets[:, t], attention[:, t]
        i, _, _ = _windows(sequence, o, kernel)
        of_windows = grad[:, t].gather(2, i.flatten(2)).view_as(i)
        grads.append(_query_gradient(sequence, o, a, of_windows, kernel))
    return torch.stack(grads, dim=2)
