"""The folder of a search, and the Optuna study in it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

from dgt.config import Config
from dgt.errors import InputError
from dgt.evaluate import METRICS
from dgt.storage.claims import LOCK, Claim
from dgt.storage.files import write_text

SEARCH = "search.json"
STUDY = "study.log"
TRIALS = "trials.jsonl"


def identity(
    graph: str, config: Config, space: dict[str, BaseDistribution], grid: str | None, runs: int
) -> dict[str, Any]:
    """Returns everything that must not change when a search is continued."""
    searched = {name: str(values) for name, values in space.items()}
    settings = {name: value for name, value in config.flat().items() if name != "device"}
    return {"graph": graph, "runs": runs, "grid": grid, "settings": settings, "space": searched}


@contextmanager
def claim(out: Path, search: dict[str, Any]) -> Iterator[optuna.Study]:
    """Reserves a folder for a search and yields the study in it.

    Args:
        out: New folder, empty folder, or folder of the same search.
        search: The :func:`identity` of the search.
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file, expected a folder or a new name")
    path = out / SEARCH
    search = json.loads(json.dumps(search))
    held = Claim(out, "another search is running in this folder")
    try:
        if path.is_file():
            _require_same(path, search)
        elif any(each.name != LOCK for each in out.iterdir()):
            raise InputError(f"{out}: not the folder of a search, expected a new or empty folder")
        else:
            write_text(path, json.dumps(search, indent=2) + "\n")
        yield _open(out / STUDY, search["settings"]["metric"])
    finally:
        held.release()


def _require_same(path: Path, search: dict[str, Any]) -> None:
    try:
        before, now = json.loads(path.read_text()), _lines(search)
        # A search from before this setting existed went by accuracy.
        before["settings"] = {"metric": "accuracy", **before["settings"]}
        before = _lines(before)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: not the {SEARCH} of a search") from None
    changed = [
        f"{name} was {before.get(name)}, now {now.get(name)}"
        for name in before | now
        if before.get(name) != now.get(name)
    ]
    if changed:
        raise InputError(
            f"{path.parent}: contains a search with other settings: {'; '.join(changed)}; "
            "choose another folder"
        )


def _lines(search: dict[str, Any]) -> dict[str, Any]:
    """Returns the identity of a search as a flat dict, with the range of each searched setting."""
    plain = {name: search[name] for name in ("graph", "runs", "grid")}
    searched = {name: f"searched in {values}" for name, values in search["space"].items()}
    start = {f"{name} at the start": search["settings"].get(name) for name in searched}
    return plain | search["settings"] | start | searched


def _open(path: Path, metric: str) -> optuna.Study:
    # A truncated last line, for example after a power failure, would damage the next one.
    text = path.read_bytes() if path.is_file() else b"\n"
    if not text.endswith(b"\n"):
        os.truncate(path, text.rfind(b"\n") + 1)
    return optuna.create_study(
        storage=JournalStorage(JournalFileBackend(str(path), _NoLock(str(path)))),
        study_name="tune",
        direction="maximize" if METRICS[metric].larger_is_better else "minimize",
        load_if_exists=True,
    )


class _NoLock(JournalFileSymlinkLock):
    """The folder is locked as a whole. Optuna's own locks would outlast a killed process."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass
