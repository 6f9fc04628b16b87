"""How good a model is, in one run and over several."""

import math
from collections.abc import Sequence

from scipy.special import stdtrit
from torch import Tensor


def accuracy(predictions: Tensor, y: Tensor, mask: Tensor) -> float | None:
    """The part of the nodes in ``mask`` whose prediction is their class; None for no node."""
    count = int(mask.sum())
    return int(((predictions == y) & mask).sum()) / count if count else None


def summarize(values: Sequence[float]) -> dict[str, float | int | None]:
    r"""Mean, standard deviation and the half width of the 95% confidence interval of the mean,

    .. math::
        t_{0.975, n-1} \cdot s / \sqrt{n}, \quad
        s^2 = \frac{1}{n-1} \sum_i (v_i - \bar{v})^2

    over :math:`n` runs, with Student's :math:`t`. One run alone has neither spread nor interval.

    Args:
        values: one result a run.
    """
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return {"mean": mean, "std": None, "ci95": None, "runs": 1}
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    ci95 = float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n)
    return {"mean": mean, "std": std, "ci95": ci95, "runs": n}
