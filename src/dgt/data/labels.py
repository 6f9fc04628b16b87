"""The kinds of labels: one class, several labels or a number per node."""

import torch
from torch import Tensor


def are_classes(y: Tensor) -> bool:
    """Returns whether labels are one class per node."""
    return y.dim() == 1 and not y.is_floating_point()


def is_labeled(y: Tensor) -> Tensor:
    """Returns which nodes have a label, bool ``(N,)``.

    Args:
        y: Classes or -1 ``(N,)``, numbers or NaN ``(N,)``, or 0 and 1 for each label, -1 for nodes
            without labels ``(N, C)``.
    """
    if y.is_floating_point():
        return ~y.isnan()
    return y >= 0 if y.dim() == 1 else (y >= 0).any(dim=1)


def label_columns(y: Tensor, classes: int, mean: float = 0.0, scale: float = 1.0) -> Tensor:
    """Returns labels as an input of a model: a column per class or label or, for numbers, one with
    the number; then a column that is 1 for nodes with a label. Rows without a label are 0.

    Args:
        y: Labels as in :func:`is_labeled`.
        classes: Number of classes or labels.
        mean: Subtracted from numbers.
        scale: Numbers are divided by it.

    Returns:
        float32 ``(N, label_width(classes))``.
    """
    known = is_labeled(y)
    if y.is_floating_point():
        columns = ((y - mean) / scale)[:, None]
    elif y.dim() == 1:
        columns = y[:, None] == torch.arange(classes)
    else:
        columns = y
    columns = torch.cat([columns.float(), known.float()[:, None]], dim=1)
    return columns.where(known[:, None], 0.0)


def label_width(classes: int) -> int:
    """Returns the number of columns of :func:`label_columns`; 0 classes are a number."""
    return max(classes, 1) + 1
