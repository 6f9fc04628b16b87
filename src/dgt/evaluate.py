"""Metrics, and their summary over several runs."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from scipy.special import stdtrit
from torch import Tensor

from dgt.config import METRICS
from dgt.errors import InputError

__all__ = ["METRICS", "Metric", "custom_metric", "summarize"]


class Metric(NamedTuple):
    """A function that measures how well scores fit labels, and how to use it."""

    compute: Callable[[Tensor, Tensor], float]
    """Function of the scores ``(N, C)`` and the labels ``(N,)`` of some nodes, on the CPU."""
    larger_is_better: bool = True
    probabilities: bool = True
    """Whether the scores must be probabilities. Otherwise, logits are used, which saves time and
    avoids ties between probabilities that round to the same number."""
    share: bool = True
    """Whether the value is between 0 and 1 and is shown in percent."""

    def value(self, name: str, scores: Tensor, labels: Tensor) -> float:
        """Computes the metric and raises an error unless it is a finite number."""
        found = self.compute(scores, labels)
        try:
            value = float(found)
        except (TypeError, ValueError, RuntimeError):
            value = math.nan
        if not math.isfinite(value):
            raise InputError(f"metric {name!r}: got {found!r}, expected a finite number")
        return value

    def text(self, value: float, digits: int = 2) -> str:
        """Formats a value."""
        return f"{value:.{digits}%}" if self.share else f"{value:.{digits + 2}f}"


def accuracy(scores: Tensor, labels: Tensor) -> float:
    """Returns the share of nodes whose class has the highest score."""
    return int((scores.argmax(dim=1) == labels).sum()) / len(labels)


def balanced_accuracy(scores: Tensor, labels: Tensor) -> float:
    """Returns the mean recall over the classes that occur among the labels."""
    from sklearn.metrics import recall_score

    predictions = scores.argmax(dim=1).numpy()
    return float(recall_score(labels, predictions, labels=labels.unique(), average="macro"))


def macro_f1(scores: Tensor, labels: Tensor) -> float:
    """Returns the mean F1 score over the classes that occur among labels or predictions."""
    from sklearn.metrics import f1_score

    predictions = scores.argmax(dim=1).numpy()
    return float(f1_score(labels, predictions, average="macro", zero_division=0.0))


def log_loss(scores: Tensor, labels: Tensor) -> float:
    """Returns the mean negative log-probability of the correct class."""
    from sklearn.metrics import log_loss

    return float(log_loss(labels, scores, labels=range(scores.size(1))))


def custom_metric(name: str, function: Callable[[Tensor, Tensor], float]) -> Metric:
    """Makes a metric of a user's function of the probabilities ``(N, C)`` and the labels ``(N,)``,
    of which larger values are better. Register a :class:`Metric` to state otherwise."""
    return Metric(function, share=False)


ACCURACY = Metric(accuracy, probabilities=False)
BALANCED_ACCURACY = Metric(balanced_accuracy, probabilities=False)
MACRO_F1 = Metric(macro_f1, probabilities=False)
LOG_LOSS = Metric(log_loss, larger_is_better=False, share=False)


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
    n = len(values)
    mean = math.fsum(values) / n
    if n == 1:
        return {"mean": mean, "std": None, "ci95": None, "runs": 1}
    std = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (n - 1))
    ci95 = float(stdtrit(n - 1, 0.975)) * std / math.sqrt(n)
    return {"mean": mean, "std": std, "ci95": ci95, "runs": n}
