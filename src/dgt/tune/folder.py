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
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from dgt.config import Config, ignore_old_norm
from dgt.config.documents import parse_json, read_json, read_text, require
from dgt.errors import InputError
from dgt.evaluate import METRICS
from dgt.storage.claims import LOCK, Claim
from dgt.storage.files import write_text
from dgt.tune.records import STATES, record

SEARCH = "search.json"
STUDY = "study.log"
STUDY_NAME = "tune"
CREATE_TRIAL = 4  # operation in a study.log
TRIALS = "trials.jsonl"
KEYS: dict[str, Any] = {
    "values": list[float],
    "seconds": float,
    "cpu_seconds": float,
    "rungs": list[dict[str, float]],
    "exact": dict[str, Any],
    "intermediate_values": list[float],
    "fixed_params": dict[str, Any],
}


def identity(
    graph: str, config: Config, space: dict[str, BaseDistribution], grid: str | None, runs: int
) -> dict[str, Any]:
    """Returns everything that must not change when a search is continued."""
    searched = {name: str(values) for name, values in space.items()}
    return {
        "graph": graph,
        "runs": runs,
        "grid": grid,
        "settings": _settings(config),
        "space": searched,
    }


def _settings(config: Config) -> dict[str, Any]:
    """Returns all settings but the device, since a search may continue on another one."""
    return {name: value for name, value in config.flat().items() if name != "device"}


@contextmanager
def claim(out: Path, search: dict[str, Any], resume: bool = False) -> Iterator[optuna.Study]:
    """Reserves a folder for a search and yields the study in it.

    Args:
        out: New folder, empty folder, or folder of the same search.
        search: The :func:`identity` of the search.
        resume: Raise an error if there is no search in the folder.
    """
    if resume and not (out / SEARCH).is_file():
        raise InputError(f"{out}: contains no search to resume")
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
    before, now = read_json(path), _lines(search)
    try:
        settings = dict(before["settings"])
        ignore_old_norm(settings)
        # A search from before a setting existed used its default, and accuracy as the metric.
        defaults = json.loads(json.dumps(_settings(Config.of("dgt")))) | {"metric": "accuracy"}
        before = _lines(before | {"settings": defaults | settings})
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(f"{path}: not the {SEARCH} of a search") from None
    names = [name for name in before | now if before.get(name) != now.get(name)]
    # Another graph or model explains all other differences.
    names = [name for name in names if name in ("graph", "model")] or names
    changed = [f"{name} was {before.get(name)}, now {now.get(name)}" for name in names]
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
    text = read_text(path) if path.exists() else ""
    lines = text[: text.rfind("\n") + 1].splitlines()
    trials = _require_operations(lines, path)
    if text and not text.endswith("\n"):
        os.truncate(path, text.rfind("\n") + 1)
    backend = JournalFileBackend(str(path), _NoLock(str(path)))
    larger = METRICS[metric].larger_is_better
    direction = StudyDirection.MAXIMIZE if larger else StudyDirection.MINIMIZE
    if not lines:
        return optuna.create_study(
            storage=JournalStorage(backend), study_name=STUDY_NAME, direction=direction
        )
    try:
        study = optuna.load_study(storage=JournalStorage(backend), study_name=STUDY_NAME)
        if study.direction != direction:
            raise ValueError(f"direction is {study.direction.name}")
        found = study.get_trials(deepcopy=False)
        if len(found) != trials:
            raise ValueError(f"has {len(found)} trials, expected {trials}")
        for trial in found:
            _check(trial)
        _check_final(study)
    except Exception as error:
        # Optuna replays the lines without checking them, so anything can go wrong.
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"{path}: damaged, or not of a search of dgt ({reason})") from None
    return study


def _require_operations(lines: list[str], path: Path) -> int:
    """Raises an error for lines that Optuna would ignore, and returns the number of trials."""
    trials = 0
    for number, line in enumerate(lines, start=1):
        place = f"{path}: line {number}"
        values = parse_json(line, place)
        numbers: dict[str, Any] = {n: int for n in ("study_id", "trial_id") if n in values}
        require(values, {"op_code": int, "worker_id": str, **numbers}, place)
        if values.get("study_id", 0) != 0 or not 0 <= values.get("trial_id", 0) <= max(
            trials - 1, 0
        ):
            raise InputError(f"{place}: damaged: names a study or a trial that does not exist")
        trials += values["op_code"] == CREATE_TRIAL
    return trials


def _check(trial: FrozenTrial) -> None:
    """Raises an error if a trial cannot be one of ours."""
    if trial.state in STATES:
        record(trial, "")
    values = trial.user_attrs.get("values", [])
    found = {
        "values": values,
        "seconds": trial.user_attrs.get("seconds", 0.0),
        "cpu_seconds": trial.user_attrs.get("cpu_seconds", 0.0),
        "rungs": trial.user_attrs.get("rungs", []),
        "exact": trial.user_attrs.get("exact", {}),
        "intermediate_values": list(trial.intermediate_values.values()),
        "fixed_params": trial.system_attrs.get("fixed_params", {}),
    }
    require(found, KEYS, f"trial {trial.number}")
    if trial.state == TrialState.COMPLETE:
        require({"value": trial.value}, {"value": float}, f"trial {trial.number}")
        steps = [step for step in trial.intermediate_values if step > 0]  # 0: the first rung
        if not values or steps != list(range(1, len(values) + 1)):
            raise ValueError(f"trial {trial.number} has {len(values)} values, expected one a run")


def _check_final(study: optuna.Study) -> None:
    """Raises an error if the results of a final comparison cannot be ours."""
    final = study.user_attrs.get("final", {})
    numbers = {str(trial.number) for trial in study.get_trials(deepcopy=False)}
    require({"final": final}, {"final": dict[str, dict[str, Any]]}, "final")
    for number, runs in final.items():
        for run, result in runs.items():
            place = f"final: trial {number}, run {run}"
            if number not in numbers or not (run.isdecimal() or run == "error"):
                raise ValueError(f"{place}: does not exist")
            expected = str if run == "error" else list[float]
            require({"result": result}, {"result": expected}, place)
            if run != "error" and len(result) != 3:
                raise ValueError(f"{place}: got {len(result)} numbers, expected 3")


class _NoLock(JournalFileSymlinkLock):
    """The folder is locked as a whole. Optuna's own locks would outlast a killed process."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass
