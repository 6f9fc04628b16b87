"""Reads small text files that may contain anything, and checks their values by type."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from dgt.errors import InputError

LARGEST = 2**28  # bytes; the files of long searches have many lines
SHOWN = 60  # characters of a value in a message

Value = TypeVar("Value")


def read_text(path: Path, largest: int = LARGEST) -> str:
    """Reads a regular file with text in UTF-8.

    Args:
        path: The file.
        largest: Largest size in bytes.
    """
    try:
        # Opening a named pipe would wait for its writer. The shell passes <(...) in /dev.
        if path.exists() and not path.is_file() and path.parts[:2] != ("/", "dev"):
            raise InputError(f"{path}: expected a regular file")
        with open(path, "rb") as file:
            content = file.read(largest + 1)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror}") from None
    if len(content) > largest:
        raise InputError(f"{path}: has more than {largest:,} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text: {error.reason} at {error.start}") from None


def parse(text: str, place: str, kind: str, loads: Callable[[str], Value]) -> Value:
    """Parses text.

    Args:
        text: The text.
        place: Name of its source in error messages.
        kind: The format, such as ``a TOML file``.
        loads: The parser.
    """
    try:
        return loads(text)
    except RecursionError:
        raise InputError(f"{place}: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{place}: not {kind}: {error}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Reads a JSON file that holds an object."""
    return parse_json(read_text(path), str(path))


def parse_json(text: str, place: str) -> dict[str, Any]:
    """Parses a JSON object. NaN and infinity are refused."""
    values = parse(text, place, "JSON", lambda text: json.loads(text, parse_constant=_no_number))
    if not isinstance(values, dict):
        raise InputError(f"{place}: expected a JSON object, got {shown(values)}")
    return values


def fields_of(kind: Any, values: dict[str, Any], place: str) -> dict[str, Any]:
    """Checks that values are the fields of a dataclass, by name and type.

    Args:
        kind: The dataclass.
        values: Its fields by name. Those with a default may be missing.
        place: Name of their source in error messages.
    """
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name in values:
        if name not in fields:
            raise InputError(f"{place}: has an unknown key {shown(name)}")
    hints = get_type_hints(kind)
    default = (dataclasses.MISSING, dataclasses.MISSING)
    needed = {n for n, f in fields.items() if (f.default, f.default_factory) == default}
    require(values, {n: hints[n] for n in fields if n in values or n in needed}, place)
    return values


def require(values: Mapping[str, Any], hints: Mapping[str, Any], place: str) -> None:
    """Raises an error unless the values have some keys with values of these types.

    Args:
        values: The values by key.
        hints: Type of each key, such as ``int`` or ``dict[str, float | None]``. Integers are also
            floats; floats must be finite.
        place: Name of the source in error messages.
    """
    for name, hint in hints.items():
        if name not in values:
            raise InputError(f"{place}: has no {name!r}")
        _require_type(values[name], hint, f"{place}: {name}")


def _require_type(value: Any, hint: Any, place: str) -> None:
    kinds, origin = get_args(hint), get_origin(hint)
    if origin is list and isinstance(value, list):
        for number, each in enumerate(value):
            _require_type(each, kinds[0], f"{place}: {number}")
    elif origin is tuple and isinstance(value, list | tuple) and len(value) == len(kinds):
        for number, (each, kind) in enumerate(zip(value, kinds, strict=True)):
            _require_type(each, kind, f"{place}: {number}")
    elif origin is dict and isinstance(value, dict):
        for name, each in value.items():
            _require_type(each, kinds[1], f"{place}: {shown(name)[1:-1]}")
    elif dataclasses.is_dataclass(hint) and isinstance(value, dict):
        fields_of(hint, value, place)
    elif origin is UnionType and isinstance(value, list | dict):
        # The place of a mistake in a list is only known if there is one kind of list.
        same = [kind for kind in kinds if (get_origin(kind) or kind) is type(value)]
        _require_type(value, same[0] if same else type(None), place)
    elif not _is_plain(value, hint):
        wanted = hint.__name__ if isinstance(hint, type) and not kinds else hint
        raise InputError(f"{place}: expected {wanted}, got {shown(value)}")


def _is_plain(value: Any, hint: Any) -> bool:
    """Returns whether a value that is no list or dict has a type."""
    if hint is Any:
        return True
    if get_origin(hint) is UnionType:
        return any(_is_plain(value, kind) for kind in get_args(hint))
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if get_origin(hint) is not None or dataclasses.is_dataclass(hint):
        return False
    if isinstance(value, bool):  # in Python, True is an int
        return hint is bool
    if hint is float:
        # Integers may be too large for a float.
        return isinstance(value, int | float) and -1e308 <= value <= 1e308
    return isinstance(value, hint)


def shown(value: Any) -> str:
    """Returns a value for an error message, cut short."""
    text = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")
