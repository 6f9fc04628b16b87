"""The record of a metric."""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from torch import Tensor

from dgt.errors import InputError
from dgt.system.plugins import call

TaskName = Literal["binary", "multiclass", "multilabel", "regression"]
"""Two classes, several classes, several labels per node, or a number per node."""
ALL_TASKS: tuple[TaskName, ...] = ("binary", "multiclass", "multilabel", "regression")


class Metric(NamedTuple):
    """A function that measures how well scores fit labels, and how to use it."""

    compute: Callable[[Tensor, Tensor], float]
    """Function of the scores ``(N, C)`` and the labels of some nodes, on the CPU. The labels are
    classes ``(N,)``; with several labels per node, 0 or 1 in each column ``(N, C)``; and for
    regression, numbers ``(N,)``. Of two classes, class 1 is the positive one."""
    larger_is_better: bool = True
    probabilities: bool = True
    """Whether the scores must be probabilities. Otherwise, they only need to be largest for the
    predicted class, which saves time and avoids ties between probabilities that round to the same
    number."""
    share: bool = True
    """Whether the value is between 0 and 1 and is shown in percent."""
    tasks: tuple[TaskName, ...] = ("binary", "multiclass")
    """The tasks that the metric is defined for."""

    def value(self, name: str, scores: Tensor, labels: Tensor) -> float:
        """Computes the metric and raises an error unless it is a finite number."""
        found = call(f"metric {name!r}", self.compute, scores, labels)
        try:
            value = float(found)
        except (TypeError, ValueError, RuntimeError):
            value = math.nan
        if not math.isfinite(value):
            got = repr(found) if isinstance(found, int | float | str) else type(found).__name__
            raise InputError(f"metric {name!r}: got {got}, expected a finite number")
        return value

    def text(self, value: float, digits: int = 2) -> str:
        """Formats a value."""
        return f"{value:.{digits}%}" if self.share else f"{value:.{digits + 2}f}"


def custom_metric(name: str, function: Callable[[Tensor, Tensor], float]) -> Metric:
    """Makes a metric of a user's function of the probabilities ``(N, C)`` and the labels ``(N,)``,
    of which larger values are better. Register a :class:`Metric` to state otherwise."""
    return Metric(function, share=False, tasks=ALL_TASKS)
