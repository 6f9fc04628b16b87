"""Hyperparameter search with Optuna.

``space`` defines what is searched, ``trials`` chooses, compares and stops the trials of a model,
and ``schedule`` trains them in worker processes. ``folder`` and ``records`` keep the state and
results of a search, ``display`` shows its progress, ``report`` and ``figures`` its result. The
settings themselves are defined in :mod:`dgt.config`.
"""

from dgt.tune.records import describe
from dgt.tune.schedule import search, search_models

__all__ = ["describe", "search", "search_models"]
