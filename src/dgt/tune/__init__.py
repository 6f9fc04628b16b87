"""Hyperparameter search with Optuna.

``space`` and ``known`` define what is searched, ``start`` what is tried first, and ``rungs`` which
trials are stopped. ``trials`` holds the trials of a model, and ``final`` compares the best of them
with the defaults. ``schedule`` trains them in worker processes (``worker``), and ``share`` gives
each of several models its part of the time. ``folder`` and ``records`` keep the state and results
of a search, ``display`` and ``wording`` show its progress, ``report``, ``comparison`` and
``figures`` its result, and ``unfinished`` says why there is none. The settings themselves are
defined in :mod:`dgt.config`.
"""

from dgt.tune.records import describe
from dgt.tune.schedule import search, search_models

__all__ = ["describe", "search", "search_models"]
