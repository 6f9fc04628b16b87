"""Table 1 of the paper: accuracy on the benchmarks, with the settings found for each."""

from dgt.config import MODELS, Config, presets, read_preset
from dgt.datasets.published import LARGE
from dgt.experiments.accuracy import accuracies
from dgt.experiments.grid import with_grid
from dgt.experiments.paper import TABLE1 as PAPER_FIGURES
from dgt.experiments.paper import table1
from dgt.experiments.ranks import with_ranks
from dgt.experiments.table import OURS, Line, Setup, Table
from dgt.report import Sheet

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
    if name not in presets():
        return Config.of(model)
    return Config.from_dict(read_preset(dataset, model), f"preset {name}").replace(model=model)


def setups() -> list[Setup]:
    """All models of the paper on its data sets, and ours on the others."""
    return [
        Setup(d, model, found(d, model))
        for d in (*DATASETS, *LARGE)
        for model in MODELS
        if model in OURS or (d, model) in PAPER_FIGURES
    ]


def lay_out(lines: list[Line]) -> Sheet:
    return with_grid(with_ranks(accuracies(lines, TITLE, table1)))


TABLE = Table("table1", setups, lay_out)
