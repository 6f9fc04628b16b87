"""Fast dropout for the CPU that stores no mask.

PyTorch draws its random numbers sequentially on one core and stores the mask for the backward pass;
on graphs with many nodes, that takes longer than the matrix products. Here, the random number of a
value is a hash of its index and of a seed drawn from PyTorch's CPU generator. Threads can therefore
share the work, and the backward pass recomputes the mask. The index is that in the whole tensor,
even if only some of its rows are given (:func:`rows_from`). The masks are therefore the same on
every device, and whether a graph is processed at once, in chunks or by several ranks.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dgt.ops.checks import Check, real
from dgt.ops.dropout import operators
from dgt.ops.linear import is_wide

__all__ = ["Dropout", "dropout", "dropout_linear", "dropout_rows", "rows_from"]

_first_row = ContextVar("first_row", default=0)

_CHECK = Check("dropout", {"x": real("..."), "plus": real("...")})
_CHECK_ROWS = Check("dropout_rows", {"x": real("N C")})


@contextmanager
def rows_from(row: int) -> Iterator[None]:
    """Declares that tensors dropped inside the context are rows of larger tensors, starting at
    ``row``."""
    token = _first_row.set(row)
    try:
        yield
    finally:
        _first_row.reset(token)


class Dropout(nn.Module):
    r"""Sets values to zero with probability ``p`` during training and scales the others by
    :math:`1 / (1 - p)`.

    Args:
        p: Dropout probability.
        relu: Whether to apply a ReLU first, fused into the same pass.
    """

    def __init__(self, p: float, *, relu: bool = False) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p must be at least 0 and below 1, got {p}")
        self.p = p
        self.relu = relu

    def forward(self, x: Tensor, plus: Tensor | None = None) -> Tensor:
        """Applies dropout to ``x`` and adds ``plus``, which is not dropped, in the same pass."""
        return dropout(x, self.p, self.training, relu=self.relu, plus=plus)

    def extra_repr(self) -> str:
        return f"p={self.p}" + ", relu=True" * self.relu


def dropout(
    x: Tensor,
    p: float,
    training: bool = True,
    *,
    relu: bool = False,
    plus: Tensor | None = None,
    start: int | None = None,
) -> Tensor:
    """:func:`torch.nn.functional.dropout` with a mask that is a hash of each value's index.

    Args:
        x: Input of any shape.
        p: Probability that a value is set to zero.
        training: Whether to drop values at all.
        relu: Whether to apply a ReLU first.
        plus: Added to the result; cannot be combined with ``relu``. Shape: as ``x``.
        start: Index of the first value in the whole tensor (default: given by
            :func:`rows_from`).
    """
    if not training or p == 0:
        _CHECK((x, plus))  # otherwise, the operator checks them
        x = F.relu(x) if relu else x
        return x if plus is None else x + plus
    if relu and plus is not None:
        raise ValueError("dropout: relu and plus cannot be combined in training")
    if start is None:
        start = _row() * math.prod(x.shape[1:])
    return operators.dropout(x, _seed(), p, relu, plus, start)


def dropout_rows(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Sets whole rows of a matrix ``(N, C)`` to zero, and scales the others."""
    _CHECK_ROWS((x,))
    if not training or p == 0:
        return x
    return x * dropout(x.new_ones(x.size(0), 1), p)


def dropout_linear(x: Tensor, weight: Tensor, bias: Tensor, p: float, row: int = 0) -> Tensor:
    """Computes ``dropout(x, p) @ weight + bias`` for data ``x`` that needs no gradient, some rows
    at a time, so that ``dropout(x, p)`` is never stored as a whole.

    Args:
        x: Shape: ``(N, F)``.
        weight: Shape: ``(F, C)``.
        bias: Shape: ``(C,)``.
        p: Probability that a value of ``x`` is set to zero.
        row: Index of the first row in the whole tensor.

    Returns:
        Shape: ``(N, C)``.
    """
    if is_wide(weight, x):
        return operators.dropout_linear.rounded(x, weight, bias, _seed(), p, row)
    return operators.dropout_linear(x, weight, bias, _seed(), p, row)


def _row() -> int:
    # torch.compile cannot trace a context variable; compiled models process all nodes at once.
    return 0 if torch.compiler.is_compiling() else _first_row.get()


def _seed() -> Tensor:
    """Draws a seed on the CPU, so that the masks are the same on every device."""
    return operators.seed() if torch.compiler.is_compiling() else operators.draw_seed()
