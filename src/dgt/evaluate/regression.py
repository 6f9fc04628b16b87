"""Metrics of regression: one column of scores against one number per node."""

from torch import Tensor

from dgt.evaluate.metric import Metric


def mae(scores: Tensor, labels: Tensor) -> float:
    """Returns the mean absolute error."""
    from sklearn.metrics import mean_absolute_error

    return float(mean_absolute_error(labels, scores[:, 0]))


def r2(scores: Tensor, labels: Tensor) -> float:
    """Returns the coefficient of determination, the explained share of the variance."""
    from sklearn.metrics import r2_score

    return float(r2_score(labels, scores[:, 0]))


MAE = Metric(mae, larger_is_better=False, share=False, tasks=("regression",))
R2 = Metric(r2, share=False, tasks=("regression",))
