"""Marks and notes in tables for runs that do not come from today's code."""

from collections.abc import Iterable
from typing import Any

from dgt.experiments.table import Line

STALE, UNKNOWN = "!", "?"


def code_counts(line: Line) -> dict[str, int]:
    """Returns how many runs of a line come from other or from unknown code."""
    states = line.states
    return {"stale": states.count("stale"), "unknown_code": states.count("unknown")}


def code_marks(rows: list[dict[str, Any]]) -> list[str]:
    """Returns the mark of each row with :func:`code_counts`. If all runs of a table come from
    unknown code, its note is enough."""
    every = _all_unknown(rows)
    return [
        STALE * bool(row["stale"]) + UNKNOWN * bool(row["unknown_code"] and not every)
        for row in rows
    ]


def code_notes(rows: list[dict[str, Any]]) -> tuple[str, ...]:
    """Returns the notes that explain the marks."""
    notes = []
    stale, unknown = (sum(row[name] for row in rows) for name in ("stale", "unknown_code"))
    if stale:
        notes.append(f"{STALE} Stale: {_runs(stale)} from other code than today's.")
    if _all_unknown(rows):
        notes.append("All runs were recorded before records named the code that they come from.")
    elif unknown:
        notes.append(
            f"{UNKNOWN} Unknown code: {_runs(unknown)} from before records named their code."
        )
    return tuple(notes)


def _all_unknown(rows: Iterable[dict[str, Any]]) -> bool:
    with_runs = [row for row in rows if row["runs"]]
    return bool(with_runs) and all(row["unknown_code"] >= row["runs"] for row in with_runs)


def _runs(count: int) -> str:
    return "one run comes" if count == 1 else f"{count:,} runs come"
