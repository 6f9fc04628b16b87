"""What a worker process of a search does: it trains once."""

import functools
import time
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from torch_geometric.data import Data

from dgt.config import Config, DataConfig
from dgt.data import load
from dgt.errors import MemoryNeeded
from dgt.estimator import estimator_for
from dgt.evaluate import METRICS
from dgt.system import machine
from dgt.training.results import without_class_warnings
from dgt.tune.rungs import Stopped, Watch


@dataclass(frozen=True)
class Job:
    """A run to train."""

    graph: str
    config: Config
    """The settings, without the searched ones."""
    settings: dict[str, Any]
    rungs: tuple[int, ...] = ()
    """Epochs at which the run is compared with others."""
    least: dict[int, float] = field(default_factory=dict)
    """The worst value with which the run goes on, for some of the rungs."""
    slot: int = 0
    """Its place on the board."""


@dataclass(frozen=True)
class Outcome:
    """The result of a run."""

    value: float | None
    """The metric on validation nodes, None if the run was stopped at a rung."""
    seconds: float
    cpu_seconds: float
    rungs: dict[int, float] = field(default_factory=dict)
    """The best value so far at each rung that the run reached. A run that ended by itself has
    reached all of them."""
    epochs: int = 0


class Board:
    """Shows the main process the epoch and the best value of each run that is being trained.

    Each worker writes to the place of its own run, so that no lock is needed.
    """

    def __init__(self, slots: int) -> None:
        self.values = get_context("spawn").RawArray("d", 2 * slots)

    def write(self, slot: int, epoch: int, best: float) -> None:
        self.values[2 * slot : 2 * slot + 2] = [float(epoch), best]

    def read(self, slot: int) -> tuple[int, float]:
        """Returns the epoch, 0 before the first one, and the best value."""
        epoch, best = self.values[2 * slot : 2 * slot + 2]
        return int(epoch), best


_board: Board | None = None


def use_board(board: Board) -> None:
    """Sets the board of this process."""
    global _board
    _board = board


def train_once(job: Job) -> Outcome:
    """Trains once. Only the metric on validation nodes leaves the worker process, which never sees
    the labels of test nodes.

    A lack of memory is an error of the settings, so that it only ends the trial.
    """
    started, cpu = time.monotonic(), time.process_time()
    metric = METRICS[str(job.config.train.metric)]
    watch = Watch(job.rungs, job.least, metric.larger_is_better)
    board, last = _board, 0

    def on_epoch(epoch: int, best: float) -> None:
        nonlocal last
        last = epoch
        if board is not None:
            board.write(job.slot, epoch, best)
        watch(epoch, best)

    value = None
    try:
        data = _graph(job.graph, job.config.train.splits, job.config.data)
        with without_class_warnings():
            value = estimator_for(job.config.replace(**job.settings)).validate(data, on_epoch)
    except Stopped:
        pass
    except (MemoryError, RuntimeError) as error:
        shortage = machine.out_of_memory(error)
        if shortage is None:
            raise
        raise MemoryNeeded(shortage) from None
    if value is not None:
        watch.finish(value)
    used = time.monotonic() - started, time.process_time() - cpu
    return Outcome(value, *used, watch.reached, last)


@functools.cache
def _graph(graph: str, splits: str, settings: DataConfig) -> Data:
    return load(graph, splits, settings)
