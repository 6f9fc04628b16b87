"""Table 1 of the paper once more, with the default settings on every graph."""

from functools import partial

from dgt.config import MODELS, Config
from dgt.experiments.accuracy import accuracies
from dgt.experiments.paper import table1
from dgt.experiments.table import Setup, Table
from dgt.experiments.table1 import DATASETS

TITLE = "Accuracy, with the default settings on every graph"


def setups() -> list[Setup]:
    return [Setup(d, model, Config().replace(model=model)) for d in DATASETS for model in MODELS]


TABLE = Table("defaults", setups, partial(accuracies, title=TITLE, published=table1))
