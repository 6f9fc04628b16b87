"""Estimators in the style of scikit-learn.

``parameters`` holds the settings, ``model`` trains, evaluates and saves a model, ``classifier`` and
``regressor`` add what classes and numbers need. :func:`load_estimator` and :func:`estimator_for`
choose by the task of a run.
"""

from pathlib import Path

from dgt.config import Config
from dgt.estimator.classifier import NodeClassifier
from dgt.estimator.model import NodeModel
from dgt.estimator.regressor import NodeRegressor
from dgt.runs.files import read_settings

__all__ = ["NodeClassifier", "NodeModel", "NodeRegressor", "estimator_for", "load_estimator"]


def estimator_for(config: Config) -> NodeModel:
    """Returns an estimator for the task in the settings."""
    return _kind(config)(config)


def load_estimator(path: Path, device: str | None = None) -> NodeModel:
    """Loads the model of a run, whatever its task. Arguments as in :meth:`NodeModel.load`."""
    return _kind(read_settings(path).config).load(path, device)


def _kind(config: Config) -> type[NodeModel]:
    return NodeRegressor if config.train.task == "regression" else NodeClassifier
