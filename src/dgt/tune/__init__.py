"""Hyperparameter search with Optuna.

``space`` defines what is searched, ``trials`` runs the search, ``folder`` and ``records`` keep its
state and results, ``display`` shows its progress. The settings themselves are defined in
:mod:`dgt.config`.
"""

from dgt.tune.records import describe
from dgt.tune.trials import search

__all__ = ["describe", "search"]
