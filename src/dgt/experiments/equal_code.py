"""Versions of the code that were shown to give the same results.

The digest of the code that decides a run (:mod:`dgt.experiments.code`) also changes if its results
do not. ``dgt reproduce NAME --verify`` shows whether they do: it trains recorded runs again with
today's code and compares all metrics and the best epoch.
"""

EQUAL: tuple[frozenset[str], ...] = ()
"""Groups of digests. For the same settings, their code gives the same results."""


def same_results(code: str | None, other: str | None) -> bool:
    """Returns whether two digests are of code that gives the same results."""
    return code == other or any({code, other} <= group for group in EQUAL)
