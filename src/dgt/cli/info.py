"""``dgt info``."""

from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dgt.cli.options import Json, print_json
from dgt.config import DataConfig

DEFAULTS = DataConfig()


def info(
    graph: str,
    /,
    *,
    json_: Json = False,
    settings: Annotated[DataConfig, Parameter(name="*", group="Own tables")] = DEFAULTS,
) -> None:
    """Show the size and composition of a graph, with histograms of its degrees and labels, and
    what becomes of the columns of a table.

    Args:
        graph: Name of a benchmark or a path.
    """
    from dgt.data import files, load
    from dgt.data.recipe import described, has_table
    from dgt.report.histograms import degrees, histogram, labels

    data = load(graph, settings=settings)
    facts = files.info(data)
    columns = described(data, settings) if has_table(data) else []
    if json_:
        keys = ("column", "kind", "becomes", "missing")
        found = [dict(zip(keys, row, strict=True)) for row in columns]
        print_json({**facts, "columns": found} if columns else facts)
        return
    table = Table("", escape(graph))
    for name, value in facts.items():
        table.add_row(name, _text(value))
    console = Console()
    console.print(table)
    if columns:
        table = Table("column", "kind", "becomes", "missing cells")
        for name, kind, becomes, missing in columns:
            table.add_row(escape(name), kind, escape(becomes), f"{missing:,}")
        console.print(table)
    for title, counts in (("degree", degrees(data)), ("label", labels(data))):
        if counts:
            console.print()
            console.print(histogram(title, counts, console))


def _text(value: int | float | None) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "unknown"
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
