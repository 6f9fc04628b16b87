"""Metrics, and their summary over several runs.

``metric`` defines the record of a metric, ``classification`` and ``regression`` the metrics of each
task, and ``summary`` means and intervals over runs. All metrics by name are in :data:`METRICS`.
What a task does with them is decided in :mod:`dgt.training.task`.
"""

from dgt.config import METRICS
from dgt.evaluate.classification import (
    ACCURACY,
    AUROC,
    AVERAGE_PRECISION,
    BALANCED_ACCURACY,
    F1,
    LOG_LOSS,
    MACRO_F1,
)
from dgt.evaluate.metric import Metric, TaskName, custom_metric
from dgt.evaluate.regression import MAE, R2
from dgt.evaluate.summary import summarize

__all__ = [
    "ACCURACY",
    "AUROC",
    "AVERAGE_PRECISION",
    "BALANCED_ACCURACY",
    "F1",
    "LOG_LOSS",
    "MACRO_F1",
    "MAE",
    "METRICS",
    "R2",
    "Metric",
    "TaskName",
    "custom_metric",
    "summarize",
]
