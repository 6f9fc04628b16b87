"""Errors caused by user input or by the environment."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """An invalid file, setting or argument.

    The message is self-contained: it states the place (file, row, column or flag), the value found
    there and what was expected. The command line prints it and exits with code 2.
    """


class RankError(Exception):
    """Another process of the same training job has ended or cannot be reached."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end by a signal other than that of Ctrl-C."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


class MemoryNeeded(InputError):
    """A model needs more memory on a graph than is available."""


def nearest(word: str, words: Iterable[str]) -> str:
    """Returns a clause that suggests the choices similar to ``word``, or all if there is none."""
    choices = sorted(words)
    close = difflib.get_close_matches(word, choices, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close) + "?"
    return "choose from " + ", ".join(choices)
