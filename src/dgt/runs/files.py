"""The names of the files of a run, and what is read from them."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from dgt.config import PARTS, Config, read_toml
from dgt.errors import InputError

CONFIG = "config.toml"
METRICS = "metrics.json"
EPOCHS = "metrics.jsonl"
MODEL = "model.safetensors"
PREDICTIONS = "predictions.parquet"
CHECKPOINT = "checkpoint.safetensors"


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
        if name not in ("graph", "runs", *PARTS):
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


def read_metrics(folder: Path) -> dict[str, Any]:
    """Reads the metrics of a complete run."""
    path = folder / METRICS
    try:
        metrics = json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; the run is not complete") from None
    except ValueError as error:
        raise InputError(f"{path}: not a JSON file: {error}") from None
    if not isinstance(metrics, dict):
        raise InputError(f"{path}: expected a JSON object, got {type(metrics).__name__}")
    return metrics
