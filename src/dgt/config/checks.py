"""Checks the types and ranges of single settings."""

import dataclasses
import math
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, Literal, get_args, get_origin

from dgt.config.documents import shown
from dgt.errors import InputError


def require(name: str, value: Any, met: bool, expected: str) -> None:
    """Raises an error unless ``met`` is true and the value, if it is a float, is finite."""
    if not met or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(f"{name}: got {value!r}, expected {expected}")


def within(
    settings: object, limits: Mapping[str, tuple[float, float]], above: bool = False
) -> None:
    """Raises an error unless some settings are unset or within their limits.

    Args:
        settings: The dataclass of the settings.
        limits: Smallest and largest value of each setting, by name.
        above: Whether values must be above the smallest one.
    """
    for name, (low, high) in limits.items():
        value = getattr(settings, name)
        if value is not None:
            met = (low < value if above else low <= value) and value <= high
            words = "above" if above else "at least"
            require(name, value, met, f"{words} {low} and at most {high}")


def require_count(name: str, value: Any, least: int = 1) -> None:
    """Raises an error unless a value is an integer of at least ``least``, below 2**31."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    require(name, value, whole and least <= value < 2**31, f"an integer of at least {least}")


def check_types(settings: Any) -> None:
    """Raises an error unless every setting of a dataclass has the type of its field."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        object.__setattr__(settings, field.name, typed(field, value, field.name))


def typed(field: dataclasses.Field[Any], value: Any, place: str) -> Any:
    """Checks a value against the type of a field and converts it.

    A field with ``choices`` in its metadata takes a name or, if the choices allow it, a function.
    A field with a tuple type takes several of them, or, if the type also names a single one, a
    single one.

    Args:
        field: The field.
        value: The value.
        place: Name of the setting in error messages.
    """
    kind: Any = field.type
    choices: Any = field.metadata.get("choices")
    options = get_args(kind) or (kind,)
    if get_origin(kind) is Literal:
        if not isinstance(value, str) or value not in options:
            raise InputError(f"{place}: {value!r} is not one of {', '.join(options)}")
        return value
    if value is None and type(None) in options:
        return None
    wanted = options[0]
    or_one = any(get_origin(option) is not tuple and option is not type(None) for option in options)
    if get_origin(wanted) is tuple and (isinstance(value, list | tuple) or not or_one):
        if not isinstance(value, list | tuple):
            raise InputError(f"{place}: expected a list of names, got {value!r}")
        if not value:
            kind = "name" if choices is None else choices.kind
            raise InputError(f"{place}: got {value!r}, expected at least one {kind}")
        for each in value:
            if choices is not None:
                choices.check(each, place)
            elif not isinstance(each, str):
                raise InputError(f"{place}: expected a list of names, got {each!r}")
        return value[0] if or_one and len(value) == 1 else tuple(value)
    if choices is not None:
        choices.check(value, place)
        return value
    # In Python, True is an int. In settings, it is not a number.
    accepted = {float: Real, int: Integral}.get(wanted, wanted)
    if not isinstance(value, accepted) or (isinstance(value, bool) and wanted is not bool):
        raise InputError(f"{place}: expected {wanted.__name__}, got {value!r}")
    try:
        return wanted(value)
    except OverflowError:
        raise InputError(f"{place}: got {shown(value)}, expected a smaller number") from None
