"""The names of the files of a run, and what is read from them."""

from pathlib import Path
from typing import Any, NamedTuple

from dgt.config import METRICS as METRIC_CHOICES
from dgt.config import PARTS as TABLES
from dgt.config import Config, read_toml
from dgt.config.documents import read_json, require
from dgt.data.splits import PARTS
from dgt.errors import InputError

CONFIG = "config.toml"
METRICS = "metrics.json"
EPOCHS = "metrics.jsonl"
MODEL = "model.safetensors"
PREDICTIONS = "predictions.parquet"
CHECKPOINT = "checkpoint.safetensors"
REPORT = "report.html"
FILES = (CONFIG, METRICS, CHECKPOINT, EPOCHS, MODEL, PREDICTIONS, REPORT)

# The types in metrics.json, for one run and for several.
KEYS: dict[str, Any] = {
    "graph": str,
    "model": str,
    "metric": str,
    "epochs": int,
    "seconds": float,
    "seed": int,
    "splits": str,
    "parameters": int,
    "device": str,
    "versions": dict[str, str],
}
ONE: dict[str, Any] = {"best_epoch": int, "split": int | None}
SEVERAL: dict[str, Any] = {
    "best_epoch": float,
    "runs": list[dict[str, Any]],
    **{f"{part}_{spread}": dict[str, float | None] for part in PARTS for spread in ("std", "ci95")},
}


class Settings(NamedTuple):
    """The content of ``config.toml`` in a run's folder."""

    config: Config
    graph: str | None = None
    """Name or path of the graph."""
    runs: int = 1
    """Number of runs in the folder. If there are several, each has its own subfolder."""


def require_run(folder: Path) -> dict[str, Any]:
    """Raises an error unless a folder has the settings of a run, possibly of unknown functions.

    Returns:
        The content of ``config.toml``.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder, expected the folder of a training run")
    path = folder / CONFIG
    if not path.is_file():
        raise InputError(f"{folder}: not the folder of a run: it has no {CONFIG}")
    tables = read_toml(path)
    for name in tables:
        if name not in ("graph", "runs", *TABLES):
            raise InputError(f"{path}: not the settings of a run: unknown table [{name}]")
    return tables


def read_settings(folder: Path) -> Settings:
    """Reads the settings from a run's folder."""
    path, tables = folder / CONFIG, require_run(folder)
    graph, runs = tables.pop("graph", None), tables.pop("runs", 1)
    if not isinstance(graph, str | None):
        raise InputError(f"{path}: graph: expected a name or path, got {graph!r}")
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 1:
        raise InputError(f"{path}: runs: expected an integer of at least 1, got {runs!r}")
    return Settings(Config.from_dict(tables, str(path)), graph, runs)


def read_metrics(folder: Path, runs: int = 1) -> dict[str, Any]:
    """Reads the metrics of a complete run, or of several runs, and checks their types."""
    path = folder / METRICS
    if not path.exists():
        raise InputError(f"{path}: no such file; the run is not complete")
    metrics = read_json(path)
    if "metric" not in metrics and "test_accuracy" in metrics:  # of version 0.1
        require(metrics, {f"{part}_accuracy": float for part in PARTS}, str(path))
        named = {part: {"accuracy": metrics[f"{part}_accuracy"]} for part in PARTS}
        metrics |= {"metric": "accuracy", "device": "cpu", **named}
    parts: dict[str, Any] = dict.fromkeys(PARTS, dict[str, float])
    kinds = SEVERAL if runs > 1 else ONE
    require(metrics, KEYS | kinds | parts, str(path))
    METRIC_CHOICES.check(metrics["metric"], f"{path}: metric")
    for part in parts:
        if metrics["metric"] not in metrics[part]:
            raise InputError(f"{path}: {part}: has no {metrics['metric']!r}")
    return metrics
