"""The folder of a run: its files, its owner, and whether the run is complete."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from dgt.config import Config, to_toml
from dgt.data.files import Predictions, write_predictions
from dgt.errors import InputError
from dgt.runs.facts import Facts
from dgt.runs.files import (
    CHECKPOINT,
    CONFIG,
    EPOCHS,
    FILES,
    METRICS,
    MODEL,
    PREDICTIONS,
    Settings,
    read_settings,
    require_run,
)
from dgt.runs.kept import clear_kept
from dgt.runs.members import clear_members, find_members, member_path, require_file, require_members
from dgt.runs.modelfile import write_model
from dgt.storage.claims import LOCK, Claim
from dgt.storage.files import write_text
from dgt.storage.paths import as_path
from dgt.system.devices import device_of

IN_USE = "another process is training in this folder"

State = Literal["new", "begun", "complete"]
Row = dict[str, float]


class RunFolder:
    """Writes the files of a run, or of several runs, into a folder.

    Args:
        path: The folder. :meth:`claim` creates it.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = as_path(path, "folder")
        self.model = self.path / MODEL
        self.checkpoint = self.path / CHECKPOINT
        self._claim: Claim | None = None
        self._new: Settings | None = None  # of a new run
        self._begun = False

    def __enter__(self) -> "RunFolder":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Gives up the folder. A run that failed before its first checkpoint leaves nothing."""
        if self._claim is not None:
            if kind is not None and self._begun and self._claim.is_held():
                self._withdraw()
            self._claim.release()

    def claim(self, settings: Settings, resume: bool = False, overwrite: bool = False) -> State:
        """Makes this process the owner of the folder, until the folder is left as a context.

        Args:
            settings: The settings of the run.
            resume: Continue the run in the folder. Its settings must be the same.
            overwrite: Replace the run in the folder. Only files of a run are removed, by
                :meth:`begin`.

        Returns:
            Whether the run in the folder is new, begun or complete.
        """
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: is a file, expected a folder or a new name")
        if resume and self.is_complete():
            self._require_same(settings)
            return "complete"
        self._claim = Claim(self.path, IN_USE)
        state = self._state(settings, resume, overwrite)
        self._new = settings if state == "new" else None
        return state

    def _state(self, settings: Settings, resume: bool, overwrite: bool) -> State:
        if not self._entries():
            return "new"
        if resume or overwrite:
            for name in FILES:
                path = self.path / name
                require_file(path)
            if settings.config.train.members > 1:
                require_members(self.path)
        if resume:
            self._require_same(settings)
            return "complete" if self.is_complete() else "begun"
        if not overwrite:
            raise InputError(
                f"{self.path}: the folder is not empty; choose another one, or continue its run "
                "with --resume or replace it with --overwrite"
            )
        require_run(self.path)
        return "new"

    def begin(self) -> None:
        """Writes the settings of a new run. Until then, a run in the folder is left as it is."""
        self.require_held()
        self._begun = True
        if self._new is not None:
            _clear(self.path)
            self.write_settings(self._new)

    def require_held(self) -> None:
        """Raises an error if the folder was removed or replaced since it was claimed."""
        if self._claim is not None:
            self._claim.require_held()

    def is_complete(self) -> bool:
        """Returns whether the run has finished. Its metrics are written last."""
        return (self.path / METRICS).is_file()

    def write_settings(self, settings: Settings) -> None:
        graph = {} if settings.graph is None else {"graph": settings.graph}
        runs = {} if settings.runs == 1 else {"runs": settings.runs}
        write_text(self.path / CONFIG, to_toml(graph | runs | _tables(settings)))

    def of_member(self, number: int) -> "RunFolder":
        """Returns the folder for the epochs and the checkpoint of a further member of an ensemble,
        which has the same owner. The folder itself has those of the first one."""
        self.require_held()
        folder = RunFolder(member_path(self.path, number))
        folder._claim = self._claim
        folder.path.mkdir(parents=True, exist_ok=True)
        return folder

    @contextmanager
    def epochs_log(self, rows: Sequence[Row]) -> Iterator[Callable[[Row], None]]:
        """Yields a function that appends an epoch to ``metrics.jsonl``, after those in ``rows``."""
        path = self.path / EPOCHS
        write_text(path, "".join(json.dumps(row) + "\n" for row in rows))
        with open(path, "ab", buffering=0) as file:

            def append(row: Row) -> None:
                self.require_held()
                line = json.dumps(row).encode() + b"\n"
                try:
                    whole = file.write(line) == len(line)
                except OSError as error:
                    raise InputError(f"{path}: cannot write: {error.strerror}") from None
                if not whole:
                    raise InputError(f"{path}: cannot write: the disk is full")

            yield append

    def save_model(self, weights: dict[str, Tensor], facts: Facts, config: Config) -> None:
        """Writes a model without a run. Replaces only files of another model."""
        with self:
            self._claim = Claim(self.path, IN_USE)
            if (self.path / CONFIG).exists():
                require_run(self.path)
            if self.is_complete() or self.checkpoint.exists():
                raise InputError(f"{self.path}: holds a training run; save to another folder")
            write_model(self.model, weights, facts)
            self.write_settings(Settings(config))

    def finish(
        self,
        weights: dict[str, Tensor],
        facts: Facts,
        predictions: Predictions,
        metrics: dict[str, Any],
    ) -> None:
        """Writes the results of a run.

        Args:
            weights: The weights of the model.
            facts: What the model stores about its graph.
            predictions: The predictions for the nodes.
            metrics: The content of ``metrics.json``.
        """
        self.require_held()
        write_model(self.model, weights, facts)
        write_predictions(self.path / PREDICTIONS, predictions)
        for name in (EPOCHS, MODEL, PREDICTIONS):
            if not (self.path / name).is_file():
                raise OSError(f"{self.path / name}: was removed by another program")
        self.complete(metrics)
        for folder in (self.path, *find_members(self.path)):
            (folder / CHECKPOINT).unlink(missing_ok=True)

    def complete(self, metrics: dict[str, Any]) -> None:
        """Writes the metrics, which marks the run, or all runs in the folder, as complete."""
        self.require_held()
        if not (self.path / CONFIG).is_file():
            raise OSError(f"{self.path / CONFIG}: was removed by another program")
        write_text(self.path / METRICS, json.dumps(metrics, indent=2) + "\n")
        _remove_parts(self.path)

    def _entries(self) -> list[Path]:
        """Returns the content of the folder, without leftovers of interrupted processes."""
        return [path for path in self.path.iterdir() if not _is_left(path)]

    def _withdraw(self) -> None:
        """Removes the files of a run that there is nothing to resume from."""
        begun = any((f / CHECKPOINT).exists() for f in (self.path, *find_members(self.path)))
        kept = begun or self.is_complete() or _runs(self.path)
        if not kept:
            _clear(self.path)
            (self.path / CONFIG).unlink(missing_ok=True)

    def _require_same(self, settings: Settings) -> None:
        earlier = read_settings(self.path)
        before, now = _flat(earlier), _flat(settings)
        if _same_device(earlier.config, settings.config):
            before["device"] = now["device"]
        differ = [name for name in before if before[name] != now[name]]
        if "runs" in differ:  # what the graph decides is only set in a single run
            differ = [name for name in ("graph", "runs") if name in differ]
        changed = [f"{name} was {before[name]!r}, now {now[name]!r}" for name in differ]
        if changed:
            advice = f"; add --runs {earlier.runs}" if differ == ["runs"] else ""
            raise InputError(
                f"{self.path}: cannot resume with other settings: {'; '.join(changed)}{advice}"
            )


def _tables(settings: Settings) -> dict[str, Any]:
    """Returns the settings to write: of several runs, each of which chooses by the graph what is
    not set, only those that are set."""
    tables, config = settings.config.to_dict(), settings.config
    if settings.runs == 1 or config.record.rule is None:
        return tables
    kept = {"model", *config.explicit}
    return {
        table: {name: value for name, value in values.items() if name in kept}
        for table, values in tables.items()
        if kept & values.keys()
    }


def _flat(settings: Settings) -> dict[str, Any]:
    return {"graph": settings.graph, "runs": settings.runs, **settings.config.flat()}


def _same_device(before: Config, now: Config) -> bool:
    """Returns whether two runs use the same device, such as ``auto`` and ``cpu`` without a GPU."""
    try:
        return device_of(before) == device_of(now)
    except InputError:  # not on this machine
        return False


def _runs(folder: Path) -> list[Path]:
    """Returns the subfolders of several runs."""
    return [run for run in folder.glob("run-*") if run.is_dir() and (run / CONFIG).is_file()]


def _clear(folder: Path) -> None:
    """Removes the files of a run and of its subfolders. All other files are kept."""
    for run in folder.glob("run-*"):
        if run.is_dir() and not run.is_symlink():
            if (run / CONFIG).is_file():
                _clear(run)
                (run / CONFIG).unlink()
            # A process that was killed may have left a folder without settings.
            if all(_is_left(path) for path in run.iterdir()):
                for path in run.iterdir():
                    path.unlink(missing_ok=True)
                run.rmdir()
    for name in FILES[1:]:
        (folder / name).unlink(missing_ok=True)
    clear_kept(folder)
    clear_members(folder)
    _remove_parts(folder)


def _is_left(path: Path) -> bool:
    """Returns whether a file is a leftover of an interrupted process."""
    return _is_part(path) or path.name == LOCK


def _is_part(path: Path) -> bool:
    """Returns whether a file is a leftover of an interrupted write."""
    return path.name.startswith(".") and ".part" in path.name


def _remove_parts(folder: Path) -> None:
    for path in folder.iterdir():
        if _is_part(path):
            path.unlink(missing_ok=True)
