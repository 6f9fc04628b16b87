"""A case: something to try, and what must come of it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Expect = Literal["refused", "accepted", "either"]

# A message that is longer repeats the user's data instead of naming the place.
LONGEST_MESSAGE = 1500
ERROR = re.compile(r"^error: ", re.MULTILINE)
# Printed by Python's ``warnings``, with a line of our code that means nothing to the user.
# The cases' own modules may warn.
PYTHON_WARNING = re.compile(r"^(?!\S*/own_)\S+\.py:\d+: \w*Warning: .*", re.MULTILINE)


class Wrong(Exception):
    """What is wrong with the outcome of a case."""


@dataclass(frozen=True)
class Outcome:
    """What a command or a call did."""

    refused: bool
    """Whether it ended with exit code 2, or raised a ValueError."""
    message: str = ""
    """The error message."""
    answer: Any = None
    """The result of a call, or the standard output of a command."""


Action = Callable[[], Outcome]
"""Runs a command or a call in the current folder; raises :class:`Wrong` for any other end than an
answer or a refusal."""


@dataclass(frozen=True)
class Case:
    """One input of the campaign.

    Attributes:
        name: Unique in its class. Together with the class, it determines the input.
        expect: "refused": a clear error, and nothing written. "accepted": a control that must give
            a right answer. "either": both are right.
        act: What to try, in a new folder that is the current one.
        prepare: Writes files into that folder first.
        names: Texts that a refusal must contain: place and value. "a|b" means one of them.
        check: Raises :class:`Wrong` or AssertionError if an answer is wrong.
        repeat: The command or the code, to be shown to the reader.
        seconds: Longest duration; more is a hang.
        free: Whether the case looks after its own files, outcome and errors.
    """

    name: str
    expect: Expect
    act: Action
    prepare: Callable[[], object] = lambda: None
    names: tuple[str, ...] = ()
    check: Callable[[Any], object] = lambda answer: None
    repeat: str = ""
    seconds: float = 60.0
    free: bool = False


@dataclass(frozen=True)
class Verdict:
    """Whether the outcome of a case is right, and otherwise why not."""

    klass: str
    name: str
    control: bool
    wrong: str | None = None
    """What is wrong, in one word or two; the table counts them."""
    detail: str = ""
    repeat: str = ""
    notes: dict[str, int] = field(default_factory=dict)
    """Further counts, such as kills."""


def listing(folder: Path) -> dict[str, tuple[int, int] | None]:
    """Returns size and time of each file below a folder; None for folders."""

    def entries(path: Path) -> Iterator[tuple[str, tuple[int, int] | None]]:
        for entry in sorted(path.iterdir()):
            name = str(entry.relative_to(folder))
            if entry.is_dir() and not entry.is_symlink():
                yield name, None
                yield from entries(entry)
            else:
                about = entry.lstat()
                yield name, (about.st_size, about.st_mtime_ns)

    return dict(entries(folder)) if folder.is_dir() else {}


def error_line(err: str) -> str:
    """Returns the text after the last ``error: `` at the start of a line of stderr, or ""."""
    return ERROR.split(err)[-1] if ERROR.search(err) else ""


def require_clear(message: str, names: tuple[str, ...]) -> None:
    """Raises :class:`Wrong` unless a message is one line that names place and value."""
    lines = message.strip().splitlines()
    if len(lines) != 1:
        raise Wrong("message", f"expected one line, got {len(lines)}: {message[:300]!r}")
    if len(message) > LONGEST_MESSAGE:
        raise Wrong("message", f"{len(message)} characters: {message[:200]!r}")
    if any(not character.isprintable() for character in lines[0]):
        raise Wrong("message", f"control characters: {message[:300]!r}")
    for alternatives in names:
        if not any(each.lower() in message.lower() for each in alternatives.split("|")):
            raise Wrong("message", f"names neither of {alternatives!r}: {message[:400]!r}")


def require_unchanged(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Raises :class:`Wrong` if files were created, removed or changed."""
    changed = sorted(
        name
        for name in before.keys() | after.keys()
        if before.get(name, "missing") != after.get(name, "missing")
    )
    if changed:
        raise Wrong("files left", f"created, removed or changed: {', '.join(changed[:6])}")


def require_no_parts(after: dict[str, Any]) -> None:
    """Raises :class:`Wrong` if there are leftovers of interrupted writes."""
    parts = [name for name in after if ".part" in name or Path(name).name.startswith(".tmp")]
    if parts:
        raise Wrong("files left", ", ".join(parts[:6]))
