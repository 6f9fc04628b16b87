"""A search's folder: whose it is, and the study in it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from dgt.config import Config
from dgt.errors import InputError
from dgt.files import write_text
from dgt.tune.space import flat

SEARCH = "search.json"
STUDY = "study.log"
TRIALS = "trials.jsonl"


def identity(
    graph: str, config: Config, space: dict[str, BaseDistribution], grid: str | None, runs: int
) -> dict[str, Any]:
    """What must stay the same for as long as a search lasts."""
    searched = {name: str(values) for name, values in space.items()}
    return {"graph": graph, "runs": runs, "grid": grid, "settings": flat(config), "space": searched}


@contextmanager
def claim(out: Path, search: dict[str, Any]) -> Iterator[optuna.Study]:
    """Makes a folder this search's own for as long as it is at work, and yields its study.

    Args:
        out: Made if it is not there; else it must be empty, or hold the same search.
        search: What :func:`identity` tells of the search.
    """
    path = out / SEARCH
    search = json.loads(json.dumps(search))
    if path.is_file():
        _require_same(path, search)
    elif out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: is not a search's folder; choose an empty one, or a new name")
    else:
        write_text(path, json.dumps(search, indent=2) + "\n")
    with open(out / STUDY, "ab") as file:
        _lock(file.fileno(), out)
        yield _open(out / STUDY)


def _require_same(path: Path, search: dict[str, Any]) -> None:
    try:
        before, now = _lines(json.loads(path.read_text())), _lines(search)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: does not hold the settings of a search") from None
    changed = [
        f"{name} was {before.get(name)}, now {now.get(name)}"
        for name in before | now
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise InputError(
            f"{path.parent}: holds a search with other settings: {'; '.join(changed)}; "
            f"choose another folder"
        )


def _lines(search: dict[str, Any]) -> dict[str, Any]:
    """All that a search is known by, by name: for a setting that is searched, its values."""
    plain = {name: search[name] for name in ("graph", "runs", "grid")}
    searched = {name: f"searched in {values}" for name, values in search["space"].items()}
    start = {f"{name} at the start": search["settings"].get(name) for name in searched}
    return plain | search["settings"] | start | searched


def _lock(descriptor: int, out: Path) -> None:
    """Keeps a second search out of the folder; the system lets go of it when this process ends."""
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputError(f"{out}: another search is at work in this folder") from None


def _open(path: Path) -> optuna.Study:
    # A line that was cut short, as by a power failure, would spoil the one after it.
    text = path.read_bytes()
    if not text.endswith(b"\n"):
        os.truncate(path, text.rfind(b"\n") + 1)
    return optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(path))),
        study_name="tune",
        direction="maximize",
        load_if_exists=True,
    )
