"""Training runs in a folder: one, or several over splits and seeds, and their summary."""

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from dgt import distributed, folder
from dgt.config import Config
from dgt.datasets import is_name, short_name
from dgt.estimator import NodeClassifier
from dgt.evaluate import summarize
from dgt.splits import PARTS, choose


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
        config: The settings; of several runs, those of the first.
        out: Folder for the results.
        graph: Name or path that the graph was loaded by.
        runs: Number of runs.
        resume: Continue what was begun in ``out``.
        overwrite: Replace what is in ``out``, if it is a run's folder.
        progress: Show progress on stderr.

    Returns:
        What is in ``out/metrics.json``: the run's metrics or, of several, their means, with
        standard deviations and 95% confidence intervals.
    """
    if runs == 1:
        given = [data]
        del data  # so that fit can let go of it
        classifier = NodeClassifier(config).fit(
            given.pop(), out=out, resume=resume, overwrite=overwrite, progress=progress, graph=graph
        )
        return classifier.metrics_
    configs = plan(data, config, runs)
    for each in configs:
        choose(data, each.train.splits, each.train.split_index)
    settings = folder.Settings(config, graph, runs)
    state = distributed.by_first(lambda: folder.claim(out, settings, resume, overwrite))
    if state == "complete":
        return folder.read_metrics(out)
    metrics = []
    for r, each in enumerate(configs):
        run = out / f"run-{r:02d}"
        classifier = NodeClassifier(each).fit(
            data, out=run, resume=resume, progress=progress, graph=graph
        )
        metrics.append(classifier.metrics_)
    summary = _summary(metrics)
    if distributed.rank() == 0:
        folder.write_metrics(out, summary)
        folder.remove_parts(out)
    return summary


def plan(data: Data, config: Config, runs: int) -> list[Config]:
    """The settings of each run: all published splits with one seed, then with the next; of random
    splits a new one each run; of a given split, or one that is set, a new seed each run."""
    seed, split, splits = config.train.seed, config.train.split, config.train.splits
    masks = data.get("train_mask")
    published = splits in ("auto", "published") and masks is not None and masks.dim() == 2
    if published and split is None:
        count = masks.size(1)
        return [config.replace(seed=seed + r // count, split=r % count) for r in range(runs)]
    return [
        config.replace(seed=seed + r, split=seed + r if split is None else split)
        for r in range(runs)
    ]


def _summary(metrics: list[dict[str, Any]]) -> dict[str, Any]:
    summary = {name: metrics[0][name] for name in ("graph", "model")}
    for part in PARTS:
        name = f"{part}_accuracy"
        over = summarize([m[name] for m in metrics])
        summary |= {name: over["mean"], f"{name}_std": over["std"], f"{name}_ci95": over["ci95"]}
    shared = ("graph", "model", "splits", "parameters", "versions")
    return summary | {
        "best_epoch": summarize([m["best_epoch"] for m in metrics])["mean"],
        "epochs": sum(m["epochs"] for m in metrics),
        "seconds": sum(m["seconds"] for m in metrics),
        "seed": metrics[0]["seed"],
        **{name: metrics[0][name] for name in ("splits", "parameters", "versions")},
        "runs": [{k: v for k, v in m.items() if k not in shared} for m in metrics],
    }


def canonical(graph: str) -> str:
    """A graph's name, or a path that holds from wherever it is used."""
    return graph if is_name(graph) else str(Path(graph).resolve())


def free_folder(graph: str) -> Path:
    """``runs/GRAPH-1``, or the next number that is not taken."""
    name, n = short_name(graph), 1
    while (path := Path("runs") / f"{name}-{n}").exists():
        n += 1
    return path
