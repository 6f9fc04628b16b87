"""The sections of a report, one file each.

A section is a function of the facts about one or several run folders. ``blocks`` defines what a
section consists of; :mod:`dgt.report.page` renders it.
"""

from dgt.report.facts import Facts
from dgt.report.sections import (
    attention,
    classes,
    mistakes,
    overview,
    representations,
    training,
    where,
)
from dgt.report.sections.blocks import Section

__all__ = ["Section", "sections"]

ALL = (
    overview.section,
    training.section,
    classes.section,
    where.section,
    mistakes.section,
    attention.section,
    representations.section,
)


def sections(facts: list[Facts]) -> list[Section]:
    """Returns the sections of a report in order."""
    return [make(facts) for make in ALL]
