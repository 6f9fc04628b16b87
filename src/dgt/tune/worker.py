"""What a worker process of a search does: it trains once."""

import functools
import time
from typing import Any

from torch_geometric.data import Data

from dgt.config import Config, DataConfig
from dgt.data import load
from dgt.errors import MemoryNeeded
from dgt.estimator import estimator_for
from dgt.system import machine
from dgt.training.results import without_class_warnings

Outcome = tuple[float, float]
"""The metric of a run on validation nodes, and its duration in seconds."""


def train_once(graph: str, config: Config, settings: dict[str, Any]) -> Outcome:
    """Trains once. Only the metric on validation nodes leaves the worker process.

    A lack of memory is an error of the settings, so that it only ends the trial.
    """
    started = time.monotonic()
    try:
        data = _graph(graph, config.train.splits, config.data)
        with without_class_warnings():
            classifier = estimator_for(config.replace(**settings)).fit(data, graph=graph)
    except (MemoryError, RuntimeError) as error:
        shortage = machine.out_of_memory(error)
        if shortage is None:
            raise
        raise MemoryNeeded(shortage) from None
    return classifier.metrics_["val"][classifier.metrics_["metric"]], time.monotonic() - started


@functools.cache
def _graph(graph: str, splits: str, settings: DataConfig) -> Data:
    return load(graph, splits, settings)
