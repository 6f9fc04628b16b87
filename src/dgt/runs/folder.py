"""The folder of a run: its files, its owner, and whether the run is complete."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from torch import Tensor

from dgt.config import Config, read_toml, to_toml
from dgt.data.files import write_predictions
from dgt.errors import InputError
from dgt.runs.kept import clear_kept
from dgt.runs.modelfile import Facts, write_model
from dgt.storage.files import write_text

CONFIG = "config.toml"
METRICS = "metrics.json"
EPOCHS = "metrics.jsonl"
MODEL = "model.safetensors"
PREDICTIONS = "predictions.parquet"
CHECKPOINT = "checkpoint.safetensors"

State = Literal["new", "begun", "complete"]
Row = dict[str, float]


class Settings(NamedTuple):
    """The content of ``config.toml`` in a run's folder."""

    config: Config
    graph: str | None = None
    """Name or path of the graph."""
    runs: int = 1
    """Number of runs in the folder. If there are several, each has its own subfolder."""


class RunFolder:
    """Writes the files of a run, or of several runs, into a folder.

    Args:
        path: The folder. :meth:`claim` creates it.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.model = self.path / MODEL
        self.checkpoint = self.path / CHECKPOINT

    def claim(self, settings: Settings, resume: bool = False, overwrite: bool = False) -> State:
        """Makes this run the owner of the folder and writes its settings.

        Args:
            settings: The settings of the run.
            resume: Continue the run in the folder. Its settings must be the same.
            overwrite: Replace the run in the folder. Only files of a run are removed.

        Returns:
            Whether the run in the folder is new, begun or complete.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: is a file, expected a folder or a new name")
        if not self._entries():
            self._make()
        elif resume:
            self._require_same(settings)
            return "complete" if self.is_complete() else "begun"
        elif overwrite:
            read_settings(self.path)
            _clear(self.path)
        else:
            raise InputError(
                f"{self.path}: the folder is not empty; choose another one, or continue its run "
                "with --resume or replace it with --overwrite"
            )
        self.write_settings(settings)
        return "new"

    def is_complete(self) -> bool:
        """Returns whether the run has finished. Its metrics are written last."""
        return (self.path / METRICS).is_file()

    def write_settings(self, settings: Settings) -> None:
        graph = {} if settings.graph is None else {"graph": settings.graph}
        runs = {} if settings.runs == 1 else {"runs": settings.runs}
        write_text(self.path / CONFIG, to_toml(graph | runs | settings.config.to_dict()))

    @contextmanager
    def epochs_log(self, rows: Sequence[Row]) -> Iterator[Callable[[Row], None]]:
        """Yields a function that appends an epoch to ``metrics.jsonl``, after those in ``rows``."""
        path = self.path / EPOCHS
        write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
        with open(path, "a", buffering=1) as file:

            def append(row: Row) -> None:
                file.write(json.dumps(row) + "\n")

            yield append

    def save_model(self, weights: dict[str, Tensor], facts: Facts, config: Config) -> None:
        """Writes a model without a run. Replaces only files of another model."""
        if (self.path / CONFIG).exists():
            read_settings(self.path)  # raises if the file belongs to another program
        if self.is_complete() or self.checkpoint.exists():
            raise InputError(f"{self.path}: holds a training run; save to another folder")
        write_model(self.model, weights, facts)
        self.write_settings(Settings(config))

    def finish(
        self,
        weights: dict[str, Tensor],
        facts: Facts,
        predictions: tuple[Sequence[int | str], list[str], list[float]],
        metrics: dict[str, Any],
    ) -> None:
        """Writes the results of a run.

        Args:
            weights: The weights of the model.
            facts: What the model stores about its graph.
            predictions: Ids, predictions and probabilities of the nodes.
            metrics: The content of ``metrics.json``.
        """
        write_model(self.model, weights, facts)
        write_predictions(self.path / PREDICTIONS, *predictions)
        self.complete(metrics)
        self.checkpoint.unlink(missing_ok=True)

    def complete(self, metrics: dict[str, Any]) -> None:
        """Writes the metrics, which marks the run, or all runs in the folder, as complete."""
        write_text(self.path / METRICS, json.dumps(metrics, indent=2) + "\n")
        _remove_parts(self.path)

    def _entries(self) -> list[Path]:
        """Returns the content of the folder, without leftovers of interrupted writes."""
        return [p for p in self.path.iterdir() if not _is_part(p)] if self.path.is_dir() else []

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.path}: cannot create this folder: {error.strerror}") from None

    def _require_same(self, settings: Settings) -> None:
        before, now = _flat(read_settings(self.path)), _flat(settings)
        changed = [
            f"{name} was {before[name]!r}, now {now[name]!r}"
            for name in before
            if before[name] != now[name]
        ]
        if changed:
            raise InputError(
                f"{self.path}: cannot resume with other settings: {'; '.join(changed)}"
            )


def read_settings(folder: Path) -> Settings:
    """Reads the settings from a run's folder."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder, expected the folder of a training run")
    path = folder / CONFIG
    if not path.is_file():
        raise InputError(f"{folder}: not the folder of a run: it has no {CONFIG}")
    tables = read_toml(path)
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


def _flat(settings: Settings) -> dict[str, Any]:
    return {"graph": settings.graph, "runs": settings.runs, **settings.config.flat()}


def _clear(folder: Path) -> None:
    """Removes the files of a run and of its subfolders. All other files are kept."""
    for run in folder.glob("run-*"):
        if run.is_dir() and (run / CONFIG).is_file():
            _clear(run)
            (run / CONFIG).unlink()
            if not any(run.iterdir()):
                run.rmdir()
    for name in (METRICS, CHECKPOINT, EPOCHS, MODEL, PREDICTIONS):
        (folder / name).unlink(missing_ok=True)
    clear_kept(folder)
    _remove_parts(folder)


def _is_part(path: Path) -> bool:
    """Returns whether a file is a leftover of an interrupted write."""
    return path.name.startswith(".") and ".part" in path.name


def _remove_parts(folder: Path) -> None:
    for path in folder.iterdir():
        if _is_part(path):
            path.unlink(missing_ok=True)
