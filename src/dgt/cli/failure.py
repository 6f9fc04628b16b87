"""Turns an exception into one line on stderr and an exit code.

A mistake in the user's input, a failure of the system and a lack of memory each have a message of
their own. Any other exception is a mistake in dgt or in a module of the user. Its traceback is
written to a file, and the line names that file.
"""

import contextlib
import os
import platform
import shlex
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from cyclopts import CycloptsError

from dgt import __version__
from dgt.errors import InputError, OwnCodeError, RankError, one_line
from dgt.system import machine, plugins

INPUT, SYSTEM, BUG = 2, 1, 70
"""Exit codes; 70 is the EX_SOFTWARE of sysexits.h."""

DEBUG = "DGT_DEBUG"
"""Environment variable that prints tracebacks."""

PACKAGES = ("torch", "torch_geometric", "numpy", "numba", "scipy", "pyarrow")


def report(error: Exception) -> int:
    """Prints one line about an exception and returns the exit code."""
    if os.environ.get(DEBUG):
        traceback.print_exception(error)
    message, code = describe(error)
    print(f"error: {one_line(message)}", file=sys.stderr)
    return code


def describe(error: Exception) -> tuple[str, int]:
    """Returns the message for an exception and the exit code."""
    if isinstance(error, CycloptsError):
        return " ".join(str(error).split()), INPUT
    if isinstance(error, OwnCodeError):
        return f"{error}; traceback: {_save(error)}", INPUT
    if isinstance(error, InputError):
        return str(error), INPUT
    if (message := machine.out_of_memory(error)) is not None:
        return message, SYSTEM
    text = " ".join(str(error).split())
    cause = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if (place := plugins.place(error)) is not None:
        return f"{place} failed: {cause}; traceback: {_save(error)}", INPUT
    if isinstance(error, RankError | OSError):
        return text or cause, SYSTEM
    return (
        f"unexpected {cause}; this is a bug in dgt, please report it with this file, which "
        f"contains the traceback, the versions and the command: {_save(error)}"
    ), BUG


def _save(error: Exception) -> str:
    """Writes the traceback to a temporary file and returns its path."""
    facts = {
        "dgt": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "command": shlex.join(sys.argv),
        "folder": _current_folder(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        **{package: _version(package) for package in PACKAGES},
    }
    lines = [f"{name}: {value}\n" for name, value in facts.items()]
    content = "".join([*lines, "\n", *traceback.format_exception(error)])
    try:
        file, path = tempfile.mkstemp(prefix="dgt-error-", suffix=".txt")
        with open(file, "w", encoding="utf-8", errors="backslashreplace") as opened:
            opened.write(content)
    except OSError as failure:
        return f"none, it cannot be written ({failure}); set {DEBUG}=1 to print the traceback"
    return path


def _current_folder() -> str:
    with contextlib.suppress(OSError):  # it may have been removed
        return os.getcwd()
    return "removed"


def _version(package: str) -> str:
    with contextlib.suppress(PackageNotFoundError):
        return version(package)
    return "not installed"
