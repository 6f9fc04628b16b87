"""``dgt info``."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from dgt.cli.options import Json, print_json


def info(graph: str, /, *, json_: Json = False) -> None:
    """Show the size and composition of a graph, with histograms of its degrees and labels.

    Args:
        graph: Name of a benchmark or a path.
    """
    from dgt.data import files, load
    from dgt.report.histograms import degrees, histogram, labels

    data = load(graph)
    facts = files.info(data)
    if json_:
        print_json(facts)
        return
    table = Table("", escape(graph))
    for name, value in facts.items():
        table.add_row(name, _text(value))
    console = Console()
    console.print(table)
    for title, counts in (("degree", degrees(data)), ("label", labels(data))):
        if counts:
            console.print()
            console.print(histogram(title, counts, console))


def _text(value: int | float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.4g}" if isinstance(value, float) else f"{value:,}"
