"""The paper's table on positional encodings: four of them, in a Transformer and in DGT."""

from functools import partial

from dgt.experiments.accuracy import accuracies
from dgt.experiments.nodesort import DATASETS
from dgt.experiments.paper import ENCODINGS, Figure
from dgt.experiments.table import Setup, Table
from dgt.experiments.table1 import found

MODELS = ("transformer", "dgt")
TITLE = "Positional encodings with the settings found for each graph and model"


def setups() -> list[Setup]:
    return [
        Setup(dataset, f"{model}/{encoding}", found(dataset, model).replace(encoding=encoding))
        for dataset in DATASETS
        for model in MODELS
        for encoding in ("none", "node2vec", "laplacian", "katz")
    ]


def published(dataset: str, variant: str) -> Figure | None:
    return ENCODINGS.get((dataset, variant))


TABLE = Table(
    "encodings",
    setups,
    partial(accuracies, title=TITLE, published=published, variant="model/encoding"),
)
