"""Table 1 of the paper with the default settings on every graph."""

from functools import partial

from dgt.config import Config
from dgt.experiments.accuracy import accuracies
from dgt.experiments.paper import table1
from dgt.experiments.table import OURS, Setup, Table
from dgt.experiments.table1 import DATASETS, FEW_FEATURES

TITLE = "Accuracy with the default settings on every graph"


def setups() -> list[Setup]:
    datasets = (*DATASETS, *FEW_FEATURES)
    return [Setup(d, model, Config.of(model)) for d in datasets for model in OURS]


TABLE = Table("defaults", setups, partial(accuracies, title=TITLE, published=table1))
