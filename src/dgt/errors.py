"""Errors caused by user input or by the environment."""

import difflib
from collections.abc import Iterable

LONGEST = 1000  # characters of a message


class InputError(ValueError):
    """An invalid file, setting or argument.

    The message is self-contained: it states the place (file, row, column or flag), the value found
    there and what was expected. The command line prints it and exits with code 2.

    Args:
        message: The message; shown in one line, see :func:`one_line`.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


def one_line(message: str) -> str:
    """Escapes line breaks and other characters that are not printable, and shortens a message.

    Values of the user are part of messages, and may contain anything.
    """
    if len(message) > LONGEST:
        message = f"{message[: LONGEST // 2]} ... {message[-LONGEST // 3 :]}"
    if message.isprintable():
        return message
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
    return "".join(shown)


class OwnCodeError(InputError):
    """A function of the user has failed; its error is the cause of this one."""


class RankError(Exception):
    """Another process of the same training job has ended or cannot be reached."""


class Terminated(KeyboardInterrupt):
    """The process was asked to end by a signal other than that of Ctrl-C."""

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


class MemoryNeeded(InputError):
    """A model needs more memory on a graph than is available."""


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message, or the name of its class."""
    return (str(error).splitlines() or [type(error).__name__])[0]


def nearest(word: str, words: Iterable[str]) -> str:
    """Returns a clause that suggests the choices similar to ``word``, or all if there is none."""
    choices = sorted(words)
    close = difflib.get_close_matches(word, choices, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(repr(c) for c in close) + "?"
    return "choose from " + ", ".join(choices)
