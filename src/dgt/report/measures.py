"""Numbers about predictions: by class, by confidence and by groups of nodes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from dgt.evaluate import summarize

BINS = 10  # of confidence


class ClassScore(NamedTuple):
    """How well one class is predicted, as means over runs; None where it is not defined."""

    nodes: float
    """Test nodes of the class."""
    precision: float | None
    recall: float | None
    f1: float | None
    f1_ci95: float | None
    """Half width of the 95% confidence interval over runs, None for a single run."""


class Bin(NamedTuple):
    """The accuracy in a group of nodes, with its 95% Wilson interval."""

    name: str
    nodes: int
    accuracy: float | None
    low: float | None
    high: float | None


class ConfidenceBin(NamedTuple):
    """The nodes whose prediction has a probability in some range."""

    low: float
    high: float
    nodes: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Outcome:
    """The predictions of one run for its test nodes."""

    y: np.ndarray
    predicted: np.ndarray
    confidence: np.ndarray
    """The probability of the predicted class."""

    @property
    def correct(self) -> np.ndarray:
        return self.y == self.predicted


def by_class(outcomes: Sequence[Outcome], classes: int) -> list[ClassScore]:
    """Returns the scores of each class."""
    labels = np.arange(classes)
    runs = np.stack(
        [
            precision_recall_fscore_support(
                each.y, each.predicted, labels=labels, zero_division=np.nan
            )
            for each in outcomes
        ]
    )  # (runs, 4, C)
    scores = []
    for c in range(classes):
        precision, recall, f1, nodes = runs[:, :, c].T
        f1 = f1[~np.isnan(f1) & (nodes > 0)]
        over = summarize(f1.tolist()) if len(f1) else {"mean": None, "ci95": None}
        mean, ci95 = over["mean"], over["ci95"]
        scores.append(ClassScore(float(nodes.mean()), _mean(precision), _mean(recall), mean, ci95))
    return scores


def confusion(outcomes: Sequence[Outcome], classes: int) -> np.ndarray:
    """Returns how often nodes of one class (row) were predicted as another (column), summed over
    runs. Shape: ``(C, C)``."""
    labels = np.arange(classes)
    return sum(confusion_matrix(each.y, each.predicted, labels=labels) for each in outcomes)


def calibration(outcomes: Sequence[Outcome]) -> tuple[list[ConfidenceBin], float]:
    """Groups all test nodes by the probability of their prediction.

    Returns:
        Bins of equal width, and the expected calibration error: the mean difference between
        confidence and accuracy over bins, weighted by their nodes.
    """
    confidence = np.concatenate([each.confidence for each in outcomes])
    correct = np.concatenate([each.correct for each in outcomes])
    place = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins, error = [], 0.0
    for b in range(BINS):
        chosen = place == b
        mean, accuracy = _mean(confidence[chosen]), _mean(correct[chosen])
        bins.append(ConfidenceBin(b / BINS, (b + 1) / BINS, int(chosen.sum()), mean, accuracy))
        if mean is not None and accuracy is not None:
            error += abs(mean - accuracy) * chosen.mean()
    return bins, float(error)


def by_group(correct: np.ndarray, group: np.ndarray, names: Sequence[str]) -> list[Bin]:
    """Returns the accuracy in each group of nodes that is not empty.

    Args:
        correct: Whether each node is predicted correctly, bool.
        group: The group of each node: an index into ``names``, or -1 for none.
        names: The names of the groups.
    """
    found = []
    for g, name in enumerate(names):
        chosen = correct[group == g]
        if len(chosen):
            low, high = wilson(int(chosen.sum()), len(chosen))
            found.append(Bin(name, len(chosen), float(chosen.mean()), low, high))
    return found


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """Returns the 95% Wilson score interval of a share."""
    z = float(ndtri(0.975))
    share = successes / trials
    center = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * np.sqrt(
        share * (1 - share) / trials + z**2 / (4 * trials**2)
    )  # fmt: skip
    return float(max(center - half, 0)), float(min(center + half, 1))


def _mean(values: np.ndarray) -> float | None:
    values = values[~np.isnan(values.astype(float))]
    return float(values.mean()) if len(values) else None
