"""A table is a list of setups, each run over splits and seeds, and a way to lay them out."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from dgt.config import Config
from dgt.datasets.published import BENCHMARKS, LARGE
from dgt.errors import InputError, nearest
from dgt.estimator import NodeClassifier
from dgt.experiments.record import Key, Record
from dgt.report import Sheet

OURS = ("dgt-light", "dgt")


class Run(NamedTuple):
    """One training: a benchmark and settings, its split and seed among them."""

    table: str
    dataset: str
    variant: str
    """Its line of the table."""
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
"""A function of a module, called in the process that trained; gives what JSON can hold."""


class Setup(NamedTuple):
    """What one line of a table shows: settings on a benchmark."""

    dataset: str
    variant: str
    """The line's name for the settings: the model or what was changed in it."""
    config: Config
    trained: bool = True
    """False for a line without runs, of a data set of which only the size is known."""

    @property
    def runs(self) -> int:
        """Number of runs, unless another is asked for: the paper's, and ten of other models."""
        return 30 if self.config.model.model in OURS and self.dataset not in LARGE else 10

    def run(self, table: str, r: int) -> Run:
        """The run of number ``r``: all published splits with seed 0, then with seed 1, and on."""
        count = BENCHMARKS[self.dataset].splits
        kind = "published" if count > 1 else "given"
        config = self.config.replace(splits=kind, split=r % count, seed=r // count)
        return Run(table, self.dataset, self.variant, config)


class Line(NamedTuple):
    """A setup and what is on record of its runs."""

    setup: Setup
    records: list[Record]
    asked: int
    """Number of runs it is to have."""
    refused: bool = False
    """Whether a run needs more memory than there is."""


@dataclass(frozen=True)
class Table:
    """What ``dgt reproduce`` can make.

    Args:
        name: Its name on the command line and in the results' files.
        setups: Makes the list of its lines' setups.
        lay_out: Turns the lines, with their records, into what is shown.
        measure: Finds out more of a trained model; it goes on record under the table's name.
        measured: Runs of each line that are measured (default: all).
        draw: Makes the figure, if there is anything to show.
    """

    name: str
    setups: Callable[[], list[Setup]]
    lay_out: Callable[[list[Line]], Sheet]
    measure: Measure | None = None
    measured: int | None = None
    draw: Callable[[list[Line]], Figure | None] | None = None

    def plan(self, setup: Setup, runs: int | None = None) -> list[Run]:
        """The runs of a line, so many or as many as it has by itself."""
        count = (runs or setup.runs) if setup.trained else 0
        planned = [setup.run(self.name, r) for r in range(count)]
        measured = len(planned) if self.measured is None else self.measured
        return [
            run._replace(measure=self.measure) if r < measured else run
            for r, run in enumerate(planned)
        ]

    def select(
        self, datasets: Iterable[str] | None = None, models: Iterable[str] | None = None
    ) -> list[Setup]:
        """The setups of some data sets and models (default: of all)."""
        setups = self.setups()
        wanted_datasets = _known("datasets", datasets, [s.dataset for s in setups])
        wanted_models = _known("models", models, [s.config.model.model for s in setups])
        chosen = [
            s
            for s in setups
            if s.dataset in wanted_datasets and s.config.model.model in wanted_models
        ]
        if not chosen:
            raise InputError("datasets and models: this table has no line with both")
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
