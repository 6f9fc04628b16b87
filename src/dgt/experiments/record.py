"""The record of finished runs: a file with one JSON object a line, which only ever grows."""

import dataclasses
import fcntl
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, get_origin

from dgt.config import Config
from dgt.errors import InputError

log = logging.getLogger("dgt")

Key = tuple[str, Config]
"""The data set and all settings: what makes two runs the same run."""


@dataclass(frozen=True)
class Record:
    """A finished run."""

    table: str
    """The table that it was run for; it counts in every table that has the same run."""
    dataset: str
    model: str
    split: int
    seed: int
    val_accuracy: float
    test_accuracy: float
    best_epoch: int
    seconds: float
    settings: dict[str, Any]
    """``Config.to_dict()``; with the data set it says which run this is."""
    versions: dict[str, str]
    measures: dict[str, Any] = dataclasses.field(default_factory=dict)
    """What a table has found out of the trained model besides, by the table's name."""


def read(path: Path) -> dict[Key, Record]:
    """The runs on record, by data set and settings.

    A last line that was cut short, by a kill while it was written, is left out with a warning.
    A setting that a line lacks, being older than the setting, has its default. A line with
    settings that no longer exist is of no run that could be asked for, and is passed over. Of a run
    that was done again for the sake of its measures, the first line counts, with the measures of
    all.
    """
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)  # until no other process is within a line
            *lines, rest = file.read().split(b"\n")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror}") from None
    records = [_parse(line, f"{path}: line {n}") for n, line in enumerate(lines, start=1)]
    if rest and _is_whole(rest):
        records.append(_parse(rest, str(path)))
    elif rest:
        log.warning("%s: line %d was cut short; it is left out", path, len(lines) + 1)
    found: dict[Key, Record] = {}
    for record in records:
        try:
            key = record.dataset, Config.from_dict(record.settings)
        except InputError:
            continue
        found[key] = with_measures(found.get(key, record), record.measures)
    return found


def with_measures(record: Record, measures: dict[str, Any]) -> Record:
    """A run with what more was measured of it; what it has already stays."""
    return dataclasses.replace(record, measures={**measures, **record.measures})


def append(path: Path, record: Record) -> None:
    """Adds a run; several processes may do so at the same time."""
    line = json.dumps(dataclasses.asdict(record)).encode() + b"\n"
    with _open(path) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _end_last_line(file)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def require_writable(path: Path) -> None:
    """Finds out before the first run that its result could not be kept."""
    _open(path).close()


def _open(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+b")
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from None


def _end_last_line(file: BinaryIO) -> None:
    """Makes the file end with a whole line: a piece of one is cut off, as no reader takes it."""
    file.seek(0)
    content = file.read()
    start = content.rfind(b"\n") + 1
    if start == len(content):
        return
    if _is_whole(content[start:]):
        file.write(b"\n")
    else:
        file.truncate(start)


def _is_whole(line: bytes) -> bool:
    try:
        _parse(line, "")
    except InputError:
        return False
    return True


def _parse(line: bytes, place: str) -> Record:
    try:
        values = json.loads(line)
    except ValueError:
        raise InputError(f"{place}: not JSON: {_start(line)!r}") from None
    if not isinstance(values, dict):
        raise InputError(f"{place}: expected a JSON object, got {_start(line)!r}")
    for field in dataclasses.fields(Record):
        kind: Any = get_origin(field.type) or field.type
        if field.name == "measures" and field.name not in values:
            values[field.name] = {}  # an older line
        if field.name not in values:
            raise InputError(f"{place}: has no {field.name!r}; expected the record of a run")
        if not isinstance(values[field.name], (int, float) if kind is float else kind):
            raise InputError(
                f"{place}: {field.name}: expected {kind.__name__}, got {values[field.name]!r}"
            )
    return Record(**{field.name: values[field.name] for field in dataclasses.fields(Record)})


def _start(line: bytes) -> str:
    return line[:40].decode(errors="replace")
