"""Means and confidence intervals over several runs."""

import math
from collections.abc import Sequence


def summarize(values: Sequence[float]) -> dict[str, float | int | None]:
    r"""Returns the mean, the standard deviation and the half-width of the 95% confidence interval,

    .. math::
        t_{0.975, n-1} \cdot s / \sqrt{n}, \quad
        s^2 = \frac{1}{n-1} \sum_i (v_i - \bar{v})^2

    over :math:`n` runs, where :math:`t` is the quantile of Student's t-distribution. For a single
    run, standard deviation and interval are None.

    Args:
        values: The result of each run.
    """
    from scipy.special import stdtrit

    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return {"mean": mean, "std": None, "ci95": None, "runs": 1}
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    ci95 = float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n)
    return {"mean": mean, "std": std, "ci95": ci95, "runs": n}
