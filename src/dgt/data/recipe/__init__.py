"""Columns of a node table as features.

``table`` carries the columns until the training nodes are known, ``infer`` tells their kinds,
``parse`` reads their values, and ``recipe`` fits what becomes of them: ``scaling`` of numbers,
``words`` for categories and text, ``dates`` and ``lists``, all listed in ``kinds``. ``order`` sorts
nodes by id, and ``hints`` points out likely mistakes.
"""

from dgt.data.recipe.hints import (
    label_candidates,
    require_label,
    require_read_with,
    warn_given_away,
)
from dgt.data.recipe.kinds import KINDS
from dgt.data.recipe.numbers import from_table
from dgt.data.recipe.order import as_given, as_sorted, given_ids, sorted_by_id
from dgt.data.recipe.recipe import Recipe, column_kinds, described
from dgt.data.recipe.table import add_table, has_table, without_table

__all__ = [
    "KINDS",
    "Recipe",
    "add_table",
    "as_given",
    "as_sorted",
    "column_kinds",
    "described",
    "from_table",
    "given_ids",
    "has_table",
    "label_candidates",
    "require_label",
    "require_read_with",
    "sorted_by_id",
    "warn_given_away",
    "without_table",
]
