r"""Reading sequences of nodes at fractional positions: the readable reference.

Axis letters: N nodes, Q queries (all nodes, or some of them), T criteria, M heads, K keys,
L length of a sequence, W window of the kernel, D channels of a head.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True)
class Kernel:
    r"""The weight of position :math:`i` for a key at the fractional position :math:`p`:

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
        normalize: Divide the weights of a key by their sum.
    """

    interpolation: Literal["rbf", "bilinear"] = "rbf"
    gamma: float = 4.0
    epsilon: float = 4.0
    normalize: bool = False

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
        """The weights at the signed distances ``p - i``, not yet normalized."""
        if self.interpolation == "rbf":
            g = torch.exp(-distance.square() / self.gamma)
        else:
            g = 1 - distance.abs()
        return g.where(distance.abs() < self.half_width, 0)


def sequence_lengths(sequences: Tensor) -> Tensor:
    """The number n of nodes before the padding.

    Args:
        sequences: Node indices, padded at the end with -1. Shape: ``(T, Q, L)``.

    Returns:
        Shape: ``(T, Q)``.
    """
    return (sequences >= 0).sum(-1)


def key_windows(
    sequence: Tensor, offsets: Tensor, attention: Tensor, kernel: Kernel
) -> tuple[Tensor, Tensor]:
    r"""The positions that the keys of one criterion read, and the weight
    :math:`\mathbf{A}_{mqk} \cdot g(\Delta p_{mqk}, i)` of each.

    Returns:
        Positions (int64, clamped into the sequence) and weights (zero outside of it), each of
        shape ``(Q, M, K, W)``.
    """
    n = sequence_lengths(sequence).view(-1, 1, 1)  # (Q, 1, 1)
    p = offsets * (n - 1)  # (Q, M, K)
    reach = math.ceil(kernel.half_width)
    steps = torch.arange(1 - reach, 1 + reach, device=p.device)
    i = p.detach().floor().long().unsqueeze(-1) + steps  # (Q, M, K, W)
    inside = (i >= 0) & (i < n.unsqueeze(-1))
    g = kernel(p.unsqueeze(-1) - i).where(inside, 0)
    if kernel.normalize:
        total = g.sum(-1, keepdim=True)
        g = g / total.where(total != 0, 1)
    return i.clamp(min=0).minimum(n.unsqueeze(-1) - 1), attention.unsqueeze(-1) * g


def sample(query: Tensor) -> tuple[Tensor, Tensor]:
    r"""Where the keys stand and what they weigh.

    Args:
        query: A linear function of the queries. Shape: ``(Q, 2, T, M, K)``.

    Returns:
        The offsets :math:`o = \mathrm{sigmoid}(query_0)`, as a share of the sequence, and the
        attention :math:`\mathbf{A} = \mathrm{softmax}_k(query_1)`, both ``(Q, T, M, K)``.
    """
    return torch.sigmoid(query[:, 0]), torch.softmax(query[:, 1], dim=-1)


def deformable_attention(
    values: Tensor, sequences: Tensor, query: Tensor, kernel: Kernel
) -> Tensor:
    r"""The inner sums of Deformable Graph Attention, for every query, criterion and head:

    .. math::
        \sum_{k=1}^K \mathbf{A}_{\pi mqk} \sum_i g(\Delta p_{\pi mqk}, i) \cdot
        \mathbf{v}_{\pi m, S_{\pi q}[i]}, \qquad \Delta p_{\pi mqk} = (n_{\pi q} - 1) \, o_{\pi mqk}

    where :math:`S_{\pi q}` is the sequence of query :math:`q` by criterion :math:`\pi`,
    :math:`n_{\pi q}` the number of nodes in it, :math:`\mathbf{v} = \mathbf{W}' \mathbf{z}` the
    values, and :math:`o` and :math:`\mathbf{A}` come from :func:`sample`. As the offsets are a
    share of the sequence, no key can fall into the padding.

    Args:
        values: The nodes' values, for each criterion and head. Shape: ``(N, T, M, D)``.
        sequences: Node indices, int32, padded at the end with -1. Shape: ``(T, Q, L)``.
        query: What :func:`sample` takes. Shape: ``(Q, 2, T, M, K)``.
        kernel: The interpolation kernel.

    Returns:
        Shape: ``(Q, T, M, D)``.
    """
    offsets, attention = sample(query)
    heads = torch.arange(values.size(2), device=values.device).view(1, -1, 1, 1)
    outs = []
    for t, sequence in enumerate(sequences):
        i, w = key_windows(sequence, offsets[:, t], attention[:, t], kernel)  # (Q, M, K, W)
        nodes = sequence.long().gather(1, i.flatten(1)).view_as(i)
        rows = values[nodes, t, heads]  # (Q, M, K, W, D)
        outs.append(torch.einsum("qmkw,qmkwd->qmd", w, rows))
    return torch.stack(outs, dim=1)


def position_weights(sequences: Tensor, query: Tensor, kernel: Kernel) -> Tensor:
    r"""The attention that each position of a sequence receives,
    :math:`w_i = \sum_k \mathbf{A}_{\pi mqk} \cdot g(\Delta p_{\pi mqk}, i)`.

    Returns:
        Shape: ``(Q, T, M, L)``.
    """
    offsets, attention = sample(query)
    Q, T, M, _ = offsets.shape
    weights = offsets.new_zeros(Q, T, M, sequences.size(2))
    for t, sequence in enumerate(sequences):
        i, w = key_windows(sequence, offsets[:, t], attention[:, t], kernel)
        weights[:, t].scatter_add_(2, i.flatten(2), w.flatten(2))
    return weights
