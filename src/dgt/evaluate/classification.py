"""Metrics of classification, from scikit-learn where it has them.

scikit-learn is imported when a metric is first computed, since that takes a second.
"""

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from dgt.evaluate.metric import Metric, TaskName

CLASSES: tuple[TaskName, ...] = ("binary", "multiclass")
ALL: tuple[TaskName, ...] = (*CLASSES, "multilabel")


def predicted(scores: Tensor, labels: Tensor) -> Tensor:
    """Returns the predictions in the form of the labels: the class with the highest score, or each
    label with a score of at least 0.5."""
    return (scores >= 0.5).long() if labels.dim() == 2 else scores.argmax(dim=1)


def accuracy(scores: Tensor, labels: Tensor) -> float:
    """Returns the share of nodes whose prediction is correct, with all of its labels."""
    right = predicted(scores, labels) == labels
    return int((right.all(dim=1) if labels.dim() == 2 else right).sum()) / len(labels)


def balanced_accuracy(scores: Tensor, labels: Tensor) -> float:
    """Returns the mean recall over the classes that occur among the labels."""
    from sklearn.metrics import recall_score

    predictions = scores.argmax(dim=1).numpy()
    return float(recall_score(labels, predictions, labels=labels.unique(), average="macro"))


def f1(scores: Tensor, labels: Tensor) -> float:
    """Returns the F1 score of the positive class or, with several labels per node, of all pairs of
    a node and a label (micro average)."""
    from sklearn.metrics import f1_score

    average = "micro" if labels.dim() == 2 else "binary"
    predictions = predicted(scores, labels)
    return float(f1_score(labels, predictions, average=average, zero_division=0.0))


def macro_f1(scores: Tensor, labels: Tensor) -> float:
    """Returns the mean F1 score over the classes that occur among labels or predictions."""
    from sklearn.metrics import f1_score

    predictions = predicted(scores, labels).numpy()
    return float(f1_score(labels, predictions, average="macro", zero_division=0.0))


def auroc(scores: Tensor, labels: Tensor) -> float:
    """Returns the area under the ROC curve of the positive class or, of more than two classes or
    labels, the mean over those with nodes inside and outside of them."""
    from sklearn.metrics import roc_auc_score

    return _mean_over_classes(roc_auc_score, scores, labels)


def average_precision(scores: Tensor, labels: Tensor) -> float:
    """Returns the average precision of the positive class or, of more than two classes or labels,
    the mean over those with nodes inside and outside of them."""
    from sklearn.metrics import average_precision_score

    return _mean_over_classes(average_precision_score, scores, labels)


def log_loss(scores: Tensor, labels: Tensor) -> float:
    """Returns the mean negative log-probability of the correct class or of each label."""
    from sklearn.metrics import log_loss

    if labels.dim() == 1:
        return float(log_loss(labels, scores, labels=range(scores.size(1))))
    columns = zip(labels.unbind(1), scores.unbind(1), strict=True)
    return math.fsum(log_loss(y, p, labels=[0, 1]) for y, p in columns) / labels.size(1)


def _mean_over_classes(
    measure: Callable[[Tensor, Tensor], float], scores: Tensor, labels: Tensor
) -> float:
    """Averages a metric of one class against the rest. NaN if there is no class to measure."""
    values = [float(measure(y, p)) for y, p in _one_against_rest(scores, labels)]
    return math.fsum(values) / len(values) if values else math.nan


def _one_against_rest(scores: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields the labels, 0 or 1, and the scores of each class with nodes inside and outside. Of two
    classes, only the positive one."""
    if labels.dim() == 1:
        labels = torch.nn.functional.one_hot(labels, scores.size(1))
        if scores.size(1) == 2:
            labels, scores = labels[:, 1:], scores[:, 1:]
    for y, p in zip(labels.unbind(1), scores.unbind(1), strict=True):
        if 0 < int(y.sum()) < len(y):
            yield y, p


ACCURACY = Metric(accuracy, probabilities=False, tasks=ALL)
BALANCED_ACCURACY = Metric(balanced_accuracy, probabilities=False)
F1 = Metric(f1, probabilities=False, tasks=("binary", "multilabel"))
MACRO_F1 = Metric(macro_f1, probabilities=False, tasks=ALL)
AUROC = Metric(auroc, tasks=ALL)
AVERAGE_PRECISION = Metric(average_precision, tasks=ALL)
LOG_LOSS = Metric(log_loss, larger_is_better=False, share=False, tasks=ALL)
