"""Checks of what the page, or any other client, asks for."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from dgt.errors import InputError

LONGEST_TEXT = 1000


class Asked:
    """The named values of a request. Every value is checked when it is read.

    Args:
        values: The values by name: strings of a query, or the values of a JSON object.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values
        self.read: set[str] = set()

    def integer(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """Returns an integer from ``least`` to ``most``; without a default, it is required."""
        value = self._get(name, default)
        try:
            number = int(value)
            if isinstance(value, bool | float) or not least <= number <= most:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            expected = f"an integer from {least} to {most}"
            raise InputError(f"{name}: got {_shown(value)}, expected {expected}") from None
        return number

    def optional(self, name: str, least: int, most: int) -> int | None:
        """Returns an integer from ``least`` to ``most``, or None if it is not given."""
        return None if self._get(name, "") in ("", None) else self.integer(name, least, most)

    def number(self, name: str, least: float = -1e30, most: float = 1e30) -> float:
        """Returns a finite number from ``least`` to ``most``."""
        value = self._get(name, None)
        try:
            number = float(value)
            if isinstance(value, bool) or not math.isfinite(number) or not least <= number <= most:
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            expected = f"a number from {least:g} to {most:g}"
            raise InputError(f"{name}: got {_shown(value)}, expected {expected}") from None
        return number

    def choice(self, name: str, choices: Iterable[str], default: str | None = None) -> str:
        """Returns one of the choices."""
        value, known = self._get(name, default), list(choices)
        if value not in known:
            raise InputError(f"{name}: got {_shown(value)}, expected one of {', '.join(known)}")
        return value

    def text(self, name: str, default: str | None = None) -> str:
        """Returns a text of at most LONGEST_TEXT characters."""
        value = self._get(name, default)
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            expected = f"a text of at most {LONGEST_TEXT} characters"
            raise InputError(f"{name}: got {_shown(value)}, expected {expected}")
        return value

    def every(self, name: str, most: int) -> list["Asked"]:
        """Returns the objects of a list of at most ``most``."""
        value = self._get(name, [])
        fits = isinstance(value, list) and len(value) <= most
        if not fits or not all(isinstance(item, dict) for item in value):
            expected = f"a list of at most {most} objects"
            raise InputError(f"{name}: got {_shown(value)}, expected {expected}")
        return [Asked(item) for item in value]

    def done(self) -> None:
        """Raises an error if there are values that nobody has read."""
        unknown = sorted(set(self.values) - self.read)
        if unknown:
            expected = f"one of {', '.join(sorted(self.read))}"
            raise InputError(f"got the unknown name {_shown(unknown[0])}, expected {expected}")

    def _get(self, name: str, default: Any) -> Any:
        self.read.add(name)
        return self.values.get(name, default)


def read_json(body: bytes) -> Asked:
    """Reads the JSON object of a request."""
    try:
        values = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("the request is not JSON") from None
    if not isinstance(values, dict):
        raise InputError(f"the request: got {_shown(values)}, expected a JSON object")
    return Asked(values)


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
