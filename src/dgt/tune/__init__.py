"""The search for good settings on a graph."""

from dgt.tune.records import describe
from dgt.tune.trials import search

__all__ = ["describe", "search"]
