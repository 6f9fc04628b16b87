"""The one error for what a user gave and we cannot take."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """A mistake in a user's file, setting or argument.

    The message stands alone: it names the place (file, row, column or flag), the value found there
    and what was expected. The command line prints it and exits with 2.
    """


class MemoryNeeded(InputError):
    """A model and a graph that together need more memory than there is."""


def nearest(word: str, words: Iterable[str]) -> str:
    """A clause that names the choices like ``word``, or all of them when none is like it."""
    choices = sorted(words)
    close = difflib.get_close_matches(word, choices, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close) + "?"
    return "choose from " + ", ".join(choices)
