"""The kinds of labels: one class, several labels or a number per node."""

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
