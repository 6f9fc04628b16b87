"""Tables on a terminal, in Markdown, and inside a Markdown file."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from dgt.errors import InputError
from dgt.storage.files import write_text


@dataclass(frozen=True)
class Sheet:
    """A formatted table."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    notes: tuple[str, ...]
    """Sentences below the table."""
    numbers: list[dict[str, Any]]
    """The values behind the rows, before formatting; one dict per row."""
    labels: int = 2
    """Number of leading columns that contain text; all others contain numbers."""
    grid: "Sheet | None" = None
    """A compact version of the table for Markdown."""


def rich_table(sheet: Sheet) -> Table:
    """Renders the table for a terminal."""
    table = Table(
        title=sheet.title,
        caption="\n".join(sheet.notes),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),  # narrow enough for 80 columns
    )
    for index, column in enumerate(sheet.columns):
        table.add_column(column, justify="left" if index < sheet.labels else "right", no_wrap=True)
    for row in sheet.rows:
        table.add_row(*row)
    return table


def markdown(sheet: Sheet) -> str:
    """Renders the table and its notes, without title; collapsed below its grid, if it has one."""
    rules = ["---" if i < sheet.labels else "---:" for i in range(len(sheet.columns))]
    lines = ["| " + " | ".join(cells) + " |" for cells in (sheet.columns, rules, *sheet.rows)]
    text = "\n".join([*lines, "", *sheet.notes]) + "\n"
    if sheet.grid is None:
        return text
    folded = f"<details>\n<summary>In full</summary>\n\n{text}\n</details>\n"
    return f"{markdown(sheet.grid)}\n{folded}"


def insert(path: Path, name: str, text: str) -> None:
    """Replaces the text between ``<!-- name -->`` and ``<!-- /name -->`` in a Markdown file."""
    before, after = around(path, name)
    write_text(path, f"{before}\n\n{text}\n{after}")


def around(path: Path, name: str) -> tuple[str, str]:
    """Returns the text up to the comment ``<!-- name -->`` and from ``<!-- /name -->`` on."""
    try:
        text = path.read_bytes().decode()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a UTF-8 text file") from None
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, _, rest = text.partition(start)
    _, found, after = rest.partition(end)
    if not found or text.count(start) != 1 or text.count(end) != 1:
        raise InputError(f"{path}: expected the comments {start} and {end}, once each, in order")
    return before + start, end + after
