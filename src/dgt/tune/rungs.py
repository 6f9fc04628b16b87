"""Successive halving: when trials are compared, and which of them are stopped.

A rung is a point of training that trials of the same model reach: a number of finished runs, or an
epoch of a run. Trials are compared at equal rungs only, as in `"A System for Massively Parallel
Hyperparameter Tuning" <https://arxiv.org/abs/1810.05934>`_ (ASHA): without waiting for each other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

FACTOR = 3  # ratio of two successive rungs
FIRST_EPOCH = 30
KEPT = 1 / 2  # share of the trials that goes on
LEAST_OTHERS = 5  # other trials at a rung before any is stopped there


def after_runs(runs: int) -> list[int]:
    """Returns after how many of its runs a trial is compared with others: 1, 3, 9, and so on."""
    return _powers(1, runs)


def after_epochs(epochs: int) -> list[int]:
    """Returns after which epochs of each run a trial is compared with others: 30, 90, 270, ..."""
    return _powers(FIRST_EPOCH, epochs)


def _powers(first: int, end: int) -> list[int]:
    found = []
    while first < end:
        found.append(first)
        first *= FACTOR
    return found


def least_to_go_on(others: Sequence[float], larger_is_better: bool) -> float | None:
    """Returns the worst value with which a trial is among the better half, which goes on, if there
    are enough others to compare it with.

    Args:
        others: The values of other trials at the same rung.
        larger_is_better: Direction of the metric.
    """
    if len(others) < LEAST_OTHERS:
        return None
    places = math.ceil(KEPT * (len(others) + 1))
    return sorted(others, reverse=larger_is_better)[places - 1]


class Stopped(Exception):
    """A run was stopped at a rung.

    It is an error so that nothing can take the run for a finished one.
    """

    def __init__(self, epoch: int) -> None:
        super().__init__(epoch)
        self.epoch = epoch


@dataclass
class Watch:
    """Watches one run: notes its best value at each rung, and stops it where it is too low.

    Args:
        epochs: The rungs.
        least: The worst value with which the run goes on, for some of the rungs.
        larger_is_better: Direction of the metric.
    """

    epochs: Sequence[int]
    least: dict[int, float]
    larger_is_better: bool
    reached: dict[int, float] = field(default_factory=dict)
    """The best value so far at each rung."""

    def __call__(self, epoch: int, best: float) -> None:
        """Notes the best value after an epoch. Raises :class:`Stopped` if the run is to end."""
        if epoch not in self.epochs:
            return
        self.reached[epoch] = best
        limit = self.least.get(epoch)
        if limit is not None and (best < limit if self.larger_is_better else best > limit):
            raise Stopped(epoch)

    def finish(self, best: float) -> None:
        """Notes the value of a run that ended before some of the rungs by itself."""
        for epoch in self.epochs:
            self.reached.setdefault(epoch, best)
