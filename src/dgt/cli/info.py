"""``dgt info``."""

from rich.console import Console
from rich.table import Table

from dgt.cli.options import Json, print_json


def info(graph: str, /, *, json_: Json = False) -> None:
    """Show the size and composition of a graph.

    Args:
        graph: Name of a benchmark or a path.
    """
    from dgt.data import files, load

    facts = files.info(load(graph))
    if json_:
        print_json(facts)
        return
    table = Table("", graph)
    for name, value in facts.items():
        table.add_row(name, _text(value))
    Console().print(table)


def _text(value: int | float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
