"""Table 1 of the paper: accuracy on the benchmarks with the settings found for each."""

from dgt.config import Config, presets, read_preset
from dgt.data.benchmarks import LARGE
from dgt.experiments.accuracy import accuracies
from dgt.experiments.average_rank import with_ranks
from dgt.experiments.grid import with_grid
from dgt.experiments.paper import MODELS, table1
from dgt.experiments.paper import TABLE1 as PAPER_FIGURES
from dgt.experiments.table import OURS, Line, Setup, Table
from dgt.report.sheet import Sheet

FILTERED = ("chameleon-filtered", "squirrel-filtered")
DATASETS = ("actor", "squirrel", "chameleon", "cora", "citeseer", *FILTERED)
FEW_FEATURES = ("minesweeper", "tolokers")
TITLE = "Accuracy with the settings found for each graph and model"


def found(dataset: str, model: str) -> Config:
    """Returns the preset of a benchmark and a model, or the defaults if there is none."""
    name = f"{dataset}-{model}"
    if name not in presets():
        return Config.of(model)
    return Config.from_dict(read_preset(dataset, model), f"preset {name}").replace(model=model)


def setups() -> list[Setup]:
    """Returns all models on the data sets of the paper and on the filtered ones, and ours on
    others."""
    return [
        Setup(d, model, found(d, model))
        for d in (*DATASETS, *FEW_FEATURES, *LARGE)
        for model in (*MODELS, "dgt-plus")
        if model in OURS or d in FILTERED or (d, model) in PAPER_FIGURES
    ]


def lay_out(lines: list[Line]) -> Sheet:
    return with_grid(with_ranks(accuracies(lines, TITLE, table1)))


TABLE = Table("table1", setups, lay_out)
