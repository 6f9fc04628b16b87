"""What defines a table: a list of setups, each run over splits and seeds, and a layout."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from dgt.config import Config
from dgt.data.benchmarks import BENCHMARKS, LARGE
from dgt.errors import InputError, nearest
from dgt.estimator import NodeClassifier
from dgt.experiments.record import Key, Record, State
from dgt.report.sheet import Sheet
from dgt.runs.plan import plan

OURS = ("dgt-light", "dgt", "dgt-plus")


class Run(NamedTuple):
    """One training run: a benchmark and settings, including split and seed."""

    table: str
    dataset: str
    variant: str
    """The variant of its line in the table."""
    config: Config
    measure: "Measure | None" = None

    @property
    def key(self) -> Key:
        return self.dataset, self.config

    def __str__(self) -> str:
        train = self.config.train
        model = self.config.model.model
        line = self.variant if model in self.variant else f"{model} {self.variant}"
        return f"{self.dataset}, {line}, split {train.split}, seed {train.seed}"


Measure = Callable[[Run, NodeClassifier], dict[str, Any]]
"""Function at module level that is called in the worker process and returns JSON values."""


class Setup(NamedTuple):
    """What one line of a table shows: a benchmark and settings."""

    dataset: str
    variant: str
    """Name of the settings: the model, or what is changed in it."""
    config: Config
    trained: bool = True
    """False for a line without runs, on a data set of which only the size is used."""

    @property
    def runs(self) -> int:
        """Default number of runs: that of the paper for our models, and ten for other models, large
        graphs and ensembles."""
        paper = self.config.model.model in OURS and self.dataset not in LARGE
        return 30 if paper and self.config.train.members == 1 else 10

    def plan(self, table: str, runs: int) -> list[Run]:
        """Returns the runs of this line: all published splits with seed 0, then with seed 1 etc."""
        count = BENCHMARKS[self.dataset].splits
        if count > 1:
            config = self.config.replace(splits="published", split=None, seed=0)
        else:
            config = self.config.replace(splits="given", split=0, seed=0)
        return [Run(table, self.dataset, self.variant, each) for each in plan(config, runs, count)]


class Line(NamedTuple):
    """A setup and the records of its runs."""

    setup: Setup
    records: list[Record]
    asked: int
    """Number of planned runs."""
    refused: bool = False
    """Whether a run does not fit into memory."""
    states: tuple[State, ...] = ()
    """For each record, whether it comes from today's code."""


@dataclass(frozen=True)
class Table:
    """A table of the paper, for ``dgt reproduce``.

    Args:
        name: Name on the command line and of the files in the results folder.
        setups: Returns the setups, one per line.
        lay_out: Formats the lines.
        measure: Takes additional measurements of a trained model. They are recorded under the name
            of the table.
        measured: Number of runs per line that are measured (default: all).
        draw: Draws the figure. Returns None if there is nothing to show.
    """

    name: str
    setups: Callable[[], list[Setup]]
    lay_out: Callable[[list[Line]], Sheet]
    measure: Measure | None = None
    measured: int | None = None
    draw: Callable[[list[Line]], Figure | None] | None = None

    def plan(self, setup: Setup, runs: int | None = None) -> list[Run]:
        """Returns the runs of a line (default: as many as its setup has)."""
        planned = setup.plan(self.name, runs or setup.runs) if setup.trained else []
        measured = len(planned) if self.measured is None else self.measured
        return [
            run._replace(measure=self.measure) if r < measured else run
            for r, run in enumerate(planned)
        ]

    def select(
        self, datasets: Iterable[str] | None = None, models: Iterable[str] | None = None
    ) -> list[Setup]:
        """Returns the setups of some data sets and models (default: all)."""
        setups = self.setups()
        wanted_datasets = _known("datasets", datasets, [s.dataset for s in setups])
        wanted_models = _known("models", models, [s.config.model.model for s in setups])
        chosen = [
            s
            for s in setups
            if s.dataset in wanted_datasets and s.config.model.model in wanted_models
        ]
        if not chosen:
            raise InputError("datasets and models: this table has no line with this combination")
        return chosen


def _known(flag: str, names: Iterable[str] | None, known: list[str]) -> list[str]:
    if names is None:
        return known
    names = list(names)
    if not names:
        raise InputError(f"{flag}: expected at least one name")
    for name in names:
        if name not in known:
            raise InputError(f"{flag}: this table has no {name!r}; {nearest(name, set(known))}")
    return names
