"""Generates Markdown tables of the settings from the dataclasses that define them."""

import ast
import dataclasses
import inspect
import textwrap
from itertools import pairwise
from typing import Any, get_args, get_origin, get_type_hints

from dgt.config import PARTS, Config


def settings_page() -> str:
    """Returns one section per part of :class:`dgt.Config`, that is per TOML table."""
    config = Config()
    return "\n".join(_section(table, getattr(config, table)) for table in PARTS)


def _section(table: str, part: Any) -> str:
    docstrings, kinds = _docstrings(type(part)), get_type_hints(type(part))
    lines = [
        f"## `[{table}]`",
        "",
        inspect.cleandoc(type(part).__doc__ or ""),
        "",
        "| setting | type | default | meaning |",
        "| --- | --- | --- | --- |",
    ]
    for field in dataclasses.fields(part):
        default = getattr(part, field.name)
        cells = [
            f"`{field.name}`",
            "name" if _is_name(field) else _kind(kinds[field.name]),
            "unset" if default is None else f"`{_value(default)}`",
            (field.metadata.get("help") or docstrings[field.name]).replace("|", r"\|"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _is_name(field: dataclasses.Field[Any]) -> bool:
    return "choices" in field.metadata and not str(field.type).startswith("tuple")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _kind(kind: Any) -> str:
    """Describes the type of a field: the values of a Literal, or the names of other types."""
    if isinstance(kind, type) and get_origin(kind) is None:
        return {"str": "text", "float": "number", "int": "integer", "bool": "`true`, `false`"}.get(
            kind.__name__, kind.__name__
        )
    choices = [choice for choice in get_args(kind) if choice not in (type(None), Ellipsis)]
    if all(isinstance(choice, str) for choice in choices):
        return ", ".join(f"`{choice}`" for choice in choices)
    if get_origin(kind) is tuple:
        return "list of names"
    return " or ".join(dict.fromkeys(map(_kind, choices)))


def _docstrings(part: type) -> dict[str, str]:
    """The docstring below each field, which only the source code has."""
    body = ast.parse(textwrap.dedent(inspect.getsource(part))).body[0].body  # type: ignore[attr-defined]
    found = {}
    for field, text in pairwise(body):
        is_text = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
        if isinstance(field, ast.AnnAssign) and is_text:
            found[field.target.id] = " ".join(text.value.value.split())  # type: ignore[attr-defined, union-attr]
    return found
