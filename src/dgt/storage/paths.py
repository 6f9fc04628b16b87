"""Checks paths that are given by the user."""

import os
from pathlib import Path
from typing import Any

from dgt.errors import InputError

NAME_BYTES = 255  # the limit of common file systems


def as_path(value: Any, name: str) -> Path:
    """Converts a value to a path, and raises an error if it cannot be one.

    Args:
        value: Text or an object that stands for a path.
        name: Name of the argument in error messages.
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise InputError(f"{name}: got {value!r}, expected a path")
    if any(len(os.fsencode(part)) > NAME_BYTES for part in Path(text).parts):
        raise InputError(f"{name}: got {text!r}, expected names of at most {NAME_BYTES} bytes")
    return Path(text)


def require_regular(path: Path) -> None:
    """Raises an error unless a path is a regular file or a link to one.

    Opening a named pipe would wait for its writer, and a device may be endless.
    """
    if not path.is_file():
        raise InputError(
            f"{path}: {'expected a regular file' if path.exists() else 'no such file'}"
        )
