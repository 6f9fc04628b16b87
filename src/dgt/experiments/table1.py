"""Table 1 of the paper: accuracy on the benchmarks, with the settings found for each."""

from functools import partial

from dgt.config import MODELS, Config, presets, read_preset
from dgt.experiments.accuracy import accuracies
from dgt.experiments.paper import table1
from dgt.experiments.table import Setup, Table

DATASETS = (
    "actor",
    "squirrel",
    "chameleon",
    "cora",
    "citeseer",
    "chameleon-filtered",
    "squirrel-filtered",
)
TITLE = "Accuracy, with the settings found for each graph and model"


def found(dataset: str, model: str) -> Config:
    """The preset of a benchmark and a model or, where there is none, the defaults."""
    name = f"{dataset}-{model}"
    tables = read_preset(dataset, model) if name in presets() else {}
    return Config.from_dict(tables, f"preset {name}").replace(model=model)


def setups() -> list[Setup]:
    return [Setup(d, model, found(d, model)) for d in DATASETS for model in MODELS]


TABLE = Table("table1", setups, partial(accuracies, title=TITLE, published=table1))
