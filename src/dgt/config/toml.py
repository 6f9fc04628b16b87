"""Reads and writes TOML files of settings."""

import json
import tomllib
from pathlib import Path
from typing import Any

from dgt.config.documents import parse, read_text

LARGEST = 2**20  # bytes


def read_toml(path: Path) -> dict[str, Any]:
    """Reads the tables of a TOML file."""
    return parse(read_text(path, LARGEST), str(path), "a TOML file", tomllib.loads)


def to_toml(tables: dict[str, Any]) -> str:
    """Formats tables as TOML. Values outside of any table come first."""
    plain = {name: value for name, value in tables.items() if not isinstance(value, dict)}
    lines = [*_lines(plain), ""] if plain else []
    for table, values in tables.items():
        if isinstance(values, dict):
            lines += [f"[{table}]", *_lines(values), ""]
    return "\n".join(lines)


def _lines(values: dict[str, Any]) -> list[str]:
    return [f"{name} = {_value(value)}" for name, value in values.items()]


def _value(value: Any) -> str:
    # JSON strings, numbers and lists are valid TOML with two exceptions: TOML does not allow
    # surrogate pairs, and DEL must be escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
