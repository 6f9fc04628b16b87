"""Deformable Graph Attention."""

import torch
from torch import Tensor, nn

from dgt.nn import interpolation, kernels
from dgt.nn.dropout import dropout as drop
from dgt.nn.dropout import dropout_rows
from dgt.nn.interpolation import Kernel
from dgt.nn.linear import Linear, linear


class DeformableGraphAttention(nn.Module):
    r"""Deformable Graph Attention (DGA) from the `"Deformable Graph Transformer"
    <https://arxiv.org/abs/2206.14337>`_ paper:

    .. math::
        \mathrm{DGA}(\mathbf{z}_q, \{S_{\pi q}\}) = \sum_{\pi \in \Pi} \sum_{m=1}^M
        \mathbf{W}_{\pi m} \left[ \sum_{k=1}^K \mathbf{A}_{\pi mqk} \cdot
        \mathbf{W}'_{\pi m} \tilde{S}_{\pi q}(\Delta p_{\pi mqk}) \right], \qquad
        \tilde{S}_{\pi q}(p) = \sum_i g(p, i) \cdot S_{\pi q}[i]

    For each node :math:`q`, criterion :math:`\pi` and head :math:`m`, the keys stand in the
    sequence :math:`S_{\pi q}` of :math:`n_{\pi q}` nodes, at the positions
    :math:`\Delta p_{\pi mqk} = (n_{\pi q} - 1) \cdot
    \mathrm{sigmoid}(\theta^{\mathrm{off}}(\mathbf{z}_q))`. They are read through the kernel
    :math:`g` and mixed by :math:`\mathbf{A}`, the softmax over the K keys of a linear function of
    :math:`\mathbf{z}_q`.

    Args:
        channels: Size of each node's representation.
        criteria: Number of criteria T.
        heads: Number of heads M for each criterion; divides ``channels``.
        keys: Number of keys K for each head.
        kernel: The interpolation kernel g.
        dropout: Probability that a node's values are read as zero by all others in training.
        value_dropout: The same for each channel of a node's representation, before the values.
    """

    def __init__(
        self,
        channels: int,
        *,
        criteria: int = 3,
        heads: int = 4,
        keys: int = 4,
        kernel: Kernel | None = None,
        dropout: float = 0.0,
        value_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if channels % heads:
            raise ValueError(f"channels ({channels}) must be a multiple of heads ({heads})")
        self.channels = channels
        self.criteria = criteria
        self.heads = heads
        self.keys = keys
        self.dropout = dropout
        self.value_dropout = value_dropout
        self.kernel = kernel or Kernel()
        self.values = Linear(channels, criteria * channels, bias=False)
        self.query = Linear(channels, 2 * criteria * heads * keys)
        self.out = Linear(criteria * channels, channels, bias=False)
        self.start: Tensor
        self.register_buffer("start", self._start(), persistent=False)
        self.reset_parameters()

    def _start(self) -> Tensor:
        """The queries of weights that are zero, to which weight decay therefore leads back: keys
        equally attended and spread evenly over the sequence, those of each head over all of it.
        Shape: ``(2, T, M, K)``."""
        count = self.heads * self.keys
        share = ((torch.arange(count) + 0.5) / count).view(self.keys, self.heads).T
        start = torch.zeros(2, self.criteria, self.heads, self.keys)
        start[0] = torch.logit(share)
        return start

    def reset_parameters(self) -> None:
        """Values and output as in a Transformer; keys as in ``start``."""
        for layer in (self.values, self.out):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(self.query.weight)
        nn.init.zeros_(self.query.bias)

    def forward(self, z: Tensor, sequences: Tensor, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            z: Shape: ``(N, C)``.
            sequences: The sequences of the nodes that attend: indices of rows of ``z``, int32,
                padded at the end with -1. Shape: ``(T, Q, L)``.
            nodes: The rows of ``z`` that attend, int64 (default: all).

        Returns:
            Shape: ``(Q, C)``.
        """
        if sequences.dim() != 3 or sequences.size(0) != self.criteria:
            shape = tuple(sequences.shape)
            raise ValueError(f"sequences must have the shape ({self.criteria}, N, L), got {shape}")
        # The same as z * mask, but for the time that a mask of each channel takes.
        whole = not (self.training and self.value_dropout)
        read = dropout_rows(z, self.dropout, self.training) if whole else z * self.mask(z)
        values = self.values(read)
        values = values.view(-1, self.criteria, self.heads, self.channels // self.heads)
        queries = self.queries(z if nodes is None else z[nodes])
        return self.out(attend(values, sequences, queries, self.kernel).flatten(1))

    def mask(self, z: Tensor) -> Tensor:
        """What is read of the nodes in training, as factors that broadcast to ``z``: of some nodes
        nothing, of the others some channels."""
        mask = drop(torch.ones_like(z[:, :1]), self.dropout, self.training)
        if self.training and self.value_dropout:
            mask = drop(mask.expand_as(z).contiguous(), self.value_dropout)
        return mask

    def queries(self, z: Tensor) -> Tensor:
        """The numbers from which :func:`dgt.nn.interpolation.sample` makes the keys' offsets and
        attention. Shape: ``(N, 2, T, M, K)``."""
        queries = linear(z, self.query.weight.t(), self.query.bias + self.start.flatten())
        return queries.view(-1, 2, self.criteria, self.heads, self.keys)

    def weights(self, z: Tensor, sequences: Tensor) -> Tensor:
        r"""The attention on each position of each node's sequences,
        :math:`w_i = \sum_k \mathbf{A}_{\pi mqk} \cdot g(\Delta p_{\pi mqk}, i)`.

        Returns:
            Shape: ``(N, T, M, L)``.
        """
        return interpolation.position_weights(sequences, self.queries(z), self.kernel)

    def __repr__(self) -> str:
        path = "fused (numba)" if _fused(self.out.weight) else "reference"
        return (
            f"{type(self).__name__}({self.channels}, criteria={self.criteria}, heads={self.heads}, "
            f"keys={self.keys}, kernel={self.kernel}, path={path!r})"
        )


def attend(values: Tensor, sequences: Tensor, queries: Tensor, kernel: Kernel) -> Tensor:
    """:func:`dgt.nn.interpolation.deformable_attention`, in its fastest form here."""
    form = kernels if _fused(values) else interpolation
    return form.deformable_attention(values, sequences, queries, kernel)


def _fused(x: Tensor) -> bool:
    return x.is_cpu and x.dtype in (torch.float32, torch.float64)
