"""The files of a run: which there are, whose folder this is, and whether the run is complete."""

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dgt.config import Config, read_toml
from dgt.errors import InputError
from dgt.files import write_text

CONFIG = "config.toml"
METRICS = "metrics.json"
EPOCHS = "metrics.jsonl"
MODEL = "model.safetensors"
PREDICTIONS = "predictions.parquet"
CHECKPOINT = "checkpoint.safetensors"


class Settings(NamedTuple):
    """What a run's ``config.toml`` holds."""

    config: Config
    graph: str | None = None
    """Name or path of the graph."""
    runs: int = 1
    """Number of runs in the folder; more than one have a folder each."""


def read_settings(folder: Path) -> Settings:
    """The settings in a run's folder."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected one that a training run has made")
    path = folder / CONFIG
    if not path.is_file():
        raise InputError(f"{folder}: not a run's folder: it has no {CONFIG}")
    tables = read_toml(path)
    graph, runs = tables.pop("graph", None), tables.pop("runs", 1)
    if not isinstance(graph, str | None):
        raise InputError(f"{path}: graph: expected a name or path, got {graph!r}")
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 1:
        raise InputError(f"{path}: runs: expected a number from 1 on, got {runs!r}")
    return Settings(Config.from_dict(tables, str(path)), graph, runs)


def write_settings(folder: Path, settings: Settings) -> None:
    lines = [] if settings.graph is None else [f"graph = {json.dumps(settings.graph)}"]
    if settings.runs > 1:
        lines.append(f"runs = {settings.runs}")
    write_text(folder / CONFIG, "\n".join([*lines, "", settings.config.to_toml()]).lstrip("\n"))


def claim(
    folder: Path, settings: Settings, resume: bool = False, overwrite: bool = False
) -> Literal["new", "begun", "complete"]:
    """Makes a folder this run's own, with its settings in it.

    Args:
        folder: Made if it is not there.
        settings: The run's settings.
        resume: Take up a run that was begun here, which must have had the same settings.
        overwrite: Replace the run that is here. Only files that a run writes are ever removed.

    Returns:
        Whether the run here is new, begun or complete.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file, expected a folder or a new name")
    if not _entries(folder):
        _make(folder)
    elif resume:
        _require_same(folder, settings)
        return "complete" if (folder / METRICS).is_file() else "begun"
    elif overwrite:
        read_settings(folder)
        _clear(folder)
    else:
        raise InputError(
            f"{folder}: the folder is not empty; choose another one, or resume or overwrite its run"
        )
    write_settings(folder, settings)
    return "new"


def _entries(folder: Path) -> list[Path]:
    """What the folder holds, apart from what a write that was cut short has left."""
    return [p for p in folder.iterdir() if not _is_part(p)] if folder.is_dir() else []


def _is_part(path: Path) -> bool:
    return path.name.startswith(".") and ".part" in path.name


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot make this folder: {error.strerror}") from None


def _require_same(folder: Path, settings: Settings) -> None:
    before, now = _flat(read_settings(folder)), _flat(settings)
    changed = [
        f"{name} was {before[name]!r}, now {now[name]!r}"
        for name in before
        if before[name] != now[name]
    ]
    if changed:
        raise InputError(f"{folder}: cannot resume with other settings: {'; '.join(changed)}")


def _flat(settings: Settings) -> dict[str, Any]:
    parts = vars(settings.config).values()
    flat = {name: value for part in parts for name, value in vars(part).items()}
    return {"graph": settings.graph, "runs": settings.runs, **flat}


def _clear(folder: Path) -> None:
    """Removes a run's files, those of the runs inside it too; leaves every other file."""
    for run in folder.glob("run-*"):
        if run.is_dir() and (run / CONFIG).is_file():
            _clear(run)
            (run / CONFIG).unlink()
            if not any(run.iterdir()):
                run.rmdir()
    for name in (METRICS, CHECKPOINT, EPOCHS, MODEL, PREDICTIONS):
        (folder / name).unlink(missing_ok=True)
    remove_parts(folder)


def remove_parts(folder: Path) -> None:
    """Removes what writes that were cut short have left."""
    for path in folder.iterdir():
        if _is_part(path):
            path.unlink(missing_ok=True)


def read_metrics(folder: Path) -> dict[str, Any]:
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


def write_metrics(folder: Path, metrics: dict[str, Any]) -> None:
    write_text(folder / METRICS, json.dumps(metrics, indent=2) + "\n")
