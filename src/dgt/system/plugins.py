"""Imports the user's own modules, which may register criteria, encodings, models or metrics."""

import contextlib
import importlib
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dgt
from dgt.errors import InputError, OwnCodeError
from dgt.system import machine

ROOT = Path(dgt.__file__).parent

_loaded: dict[str, None] = {}  # used as an ordered set


def load(module: str) -> None:
    """Imports a module of the user, with the current folder on the path.

    Args:
        module: Dotted name of the module.
    """
    if module.endswith(".py") or not all(part.isidentifier() for part in module.split(".")):
        name = module.removesuffix(".py").strip("./").replace("/", ".")
        raise InputError(f"--import: got {module!r}, expected a module name such as {name!r}")
    if (folder := os.getcwd()) not in sys.path:
        sys.path.insert(0, folder)
    importlib.invalidate_caches()  # the file may be newer than the cached listing of its folder
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
            importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise _failure(module, error) from None
        raise InputError(
            f"--import: no module {module!r} in the current folder or the installed packages"
        ) from None
    except (Exception, SystemExit) as error:
        raise _failure(module, error) from None
    _loaded[module] = None


def loaded() -> tuple[str, ...]:
    """Returns the modules imported so far; worker processes import them as well."""
    return tuple(_loaded)


def call(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function of the user. If it fails, the error names it and the line.

    Args:
        what: What the function is, for the error message.
        function: The function.
        *arguments: Its arguments.
    """
    try:
        return function(*arguments)
    except (InputError, MemoryError):
        raise
    except Exception as error:
        if machine.out_of_memory(error) is not None:
            raise
        frames = traceback.extract_tb(error.__traceback__)[1:]
        outside = [f for f in frames if not Path(f.filename).is_relative_to(ROOT)] or frames
        own = [frame for frame in frames if frame.filename == outside[0].filename]
        at = f" in {own[-1].name}, {own[-1].filename}, line {own[-1].lineno}" if own else ""
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        raise OwnCodeError(f"{what}: failed{at}: {cause}") from error


def place(error: BaseException) -> str | None:
    """Returns the function, file and line of the user's modules that an exception comes from.

    Returns None if it does not come from a module that :func:`load` has imported.
    """
    packages = {module.partition(".")[0] for module in _loaded}
    found = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__", "").partition(".")[0] in packages:
            code = frame.f_code
            found = f"{code.co_name} in {code.co_filename}, line {line},"
    return found


def _failure(module: str, error: BaseException) -> InputError:
    """Returns one line with the cause and with the line of the user's module that leads to it."""
    if isinstance(error, SyntaxError):
        place = f"{error.filename}, line {error.lineno}"
    else:
        frames = traceback.extract_tb(error.__traceback__)[1:]
        own = [f for f in frames if "importlib" not in f.filename]
        place = f"{own[0].filename}, line {own[0].lineno}" if own else module
    cause = " ".join(f"{type(error).__name__}: {error}".split())
    return InputError(f"--import: module {module!r} failed at {place}: {cause}")
