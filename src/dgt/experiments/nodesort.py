"""The paper's tables on NodeSort: absolute and relative orders, one and three criteria."""

from functools import partial

from dgt.experiments.accuracy import accuracies
from dgt.experiments.paper import NODESORT, Figure
from dgt.experiments.table import Setup, Table
from dgt.experiments.table1 import found

DATASETS = ("cora", "citeseer", "chameleon", "squirrel")
ORDERINGS: dict[str, tuple[str, ...] | None] = {
    "AR": ("absolute-random",),
    "AB": ("absolute-bfs",),
    "AM": ("absolute-bfs", "absolute-ppr", "absolute-similarity"),
    "RB": ("bfs",),
    "RP": ("ppr",),
    "RF": ("similarity",),
    "RM": None,  # all three, the default criteria of DGT
}
TITLE = "Orderings and criteria of NodeSort in DGT with the settings found for each graph"
NOTE = (
    "Absolute orders are the same for all nodes: AR random, AB by BFS from the largest hub, "
    "AM by BFS, PageRank and features. "
    "Relative orders: RB by BFS, RP by PPR, RF by features, RM all three."
)


def setups() -> list[Setup]:
    return [
        Setup(dataset, name, found(dataset, "dgt").replace(criteria=criteria))
        for dataset in DATASETS
        for name, criteria in ORDERINGS.items()
    ]


def published(dataset: str, ordering: str) -> Figure | None:
    return NODESORT.get((dataset, ordering))


TABLE = Table(
    "nodesort",
    setups,
    partial(accuracies, title=TITLE, published=published, variant="ordering", notes=(NOTE,)),
)
