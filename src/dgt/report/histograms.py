"""Histograms of the nodes of a graph, for a terminal."""

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from torch_geometric.data import Data

from dgt.data.matrices import adjacency
from dgt.report.display import count, shown
from dgt.report.surroundings import by_degree

BAR = 30  # characters
CLASSES = 15


def degrees(data: Data) -> dict[str, int]:
    """Returns the number of nodes in each range of degrees that occurs."""
    groups = by_degree(adjacency(data.edge_index, data.num_nodes))
    counts = np.bincount(groups.member, minlength=len(groups.names)).tolist()
    return {name: nodes for name, nodes in zip(groups.names, counts, strict=True) if nodes}


def labels(data: Data) -> dict[str, int]:
    """Returns the number of nodes of the most frequent classes, of all others, and unlabeled."""
    counts = data.y[data.y >= 0].bincount(minlength=len(data.class_names))
    order = counts.argsort(descending=True, stable=True).tolist()
    found = {str(data.class_names[c]): int(counts[c]) for c in order[:CLASSES]}
    rest = order[CLASSES:]
    if rest:
        found[f"({count(len(rest), 'other class', 'other classes')})"] = int(counts[rest].sum())
    unlabeled = int((data.y < 0).sum())
    return found | ({"(no label)": unlabeled} if unlabeled else {})


def histogram(title: str, counts: dict[str, int], console: Console) -> Table:
    """Renders the number of nodes by name as a table with bars."""
    block = "#" if console.options.ascii_only else "█"
    table = Table(title, "nodes", "", box=box.SIMPLE_HEAD, show_edge=False)
    table.columns[1].justify = "right"
    for name, nodes in counts.items():
        length = round(BAR * nodes / max(counts.values()))
        # As Text, since names in brackets would be taken for markup.
        table.add_row(Text(shown(name, 40)), f"{nodes:,}", block * max(length, bool(nodes)))
    return table
