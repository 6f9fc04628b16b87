"""Trains one or several runs, over splits and seeds, and summarizes them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from dgt.config import Config
from dgt.data import is_name, short_name
from dgt.errors import InputError
from dgt.estimator import estimator_for
from dgt.runs.files import Settings, read_metrics
from dgt.runs.folder import RunFolder
from dgt.runs.plan import plan_on
from dgt.training import distributed
from dgt.training.results import of_runs


def train_runs(
    data: Data,
    config: Config,
    out: Path,
    *,
    graph: str,
    runs: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool = False,
) -> dict[str, Any]:
    """Trains once in ``out``, or several times in ``out/run-00``, ``out/run-01`` and so on.

    Args:
        data: The graph.
        config: The settings. If there are several runs, those of the first one.
        out: Folder for the results.
        graph: Name or path of the graph.
        runs: Number of runs.
        resume: Continue the runs in ``out``.
        overwrite: Replace the runs in ``out``.
        progress: Show progress on stderr.

    Returns:
        The content of ``out/metrics.json``: the metrics of the run. For several runs, the means of
        their metrics, with standard deviations and 95% confidence intervals.
    """
    if runs == 1:
        given = [data]
        del data  # so that fit can free it
        classifier = estimator_for(config).fit(
            given.pop(), out=out, resume=resume, overwrite=overwrite, progress=progress, graph=graph
        )
        return classifier.metrics_
    configs = plan_on(data, config, runs)
    settings = Settings(config, graph, runs)
    with RunFolder(out) as folder:
        state = distributed.by_first(lambda: folder.claim(settings, resume, overwrite))
        if state == "complete":
            return read_metrics(out, runs)
        distributed.by_first(folder.begin)
        metrics = []
        for r, each in enumerate(configs):
            run = out / f"run-{r:02d}"
            classifier = estimator_for(each).fit(
                data, out=run, resume=resume, progress=progress, graph=graph
            )
            metrics.append(classifier.metrics_)
        summary = of_runs(metrics)
        if distributed.rank() == 0:
            folder.complete(summary)
        return summary


def canonical(graph: str) -> str:
    """Returns the name of a graph, or its absolute path."""
    return graph if is_name(graph) else str(Path(graph).resolve())


@contextmanager
def free_folder(graph: str) -> Iterator[Path]:
    """Creates and yields the first of ``runs/GRAPH-1``, ``runs/GRAPH-2`` etc. that does not exist.

    Several processes get different folders. A folder that is still empty after an error is removed.
    """
    parent, name = Path("runs"), short_name(graph)
    try:
        parent.mkdir(exist_ok=True)
        path = next(path for n in count(1) if _create(path := parent / f"{name}-{n}"))
    except OSError as error:
        raise InputError(f"{parent}: cannot create a folder here: {error.strerror}") from None
    try:
        yield path
    except BaseException:
        with suppress(OSError):  # not empty
            path.rmdir()
            parent.rmdir()
        raise


def _create(folder: Path) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True
