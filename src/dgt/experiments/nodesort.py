"""The paper's tables on NodeSort: absolute against relative orders, one criterion against three."""

from functools import partial

from dgt.config import ABSOLUTE
from dgt.experiments.accuracy import accuracies
from dgt.experiments.paper import NODESORT, Figure
from dgt.experiments.table import Setup, Table
from dgt.experiments.table1 import found

DATASETS = ("cora", "citeseer", "chameleon", "squirrel")
ORDERINGS: dict[str, tuple[str, ...] | None] = {
    "AR": ("absolute-random",),
    "AB": ("absolute-bfs",),
    "AM": ABSOLUTE[1:],
    "RB": ("bfs",),
    "RP": ("ppr",),
    "RF": ("similarity",),
    "RM": None,  # all three, as DGT has them
}
TITLE = "NodeSort: orderings and criteria, in DGT with the settings found for each graph"
NOTE = (
    "Absolute orders, the same for all nodes: AR random, AB by BFS from the largest hub, "
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
