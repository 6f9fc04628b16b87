"""The record of finished runs: an append-only file with one JSON object per line."""

import dataclasses
import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from dgt.config import Config
from dgt.config.documents import fields_of, parse_json, require
from dgt.errors import InputError
from dgt.experiments.code import digest
from dgt.experiments.equal_code import same_results
from dgt.storage.locks import lock

log = logging.getLogger("dgt")

Key = tuple[str, Config]
"""The data set and all settings. They identify a run."""
State = Literal["current", "stale", "unknown"]
"""Whether a record comes from today's code, from other code, or from code that is not known."""


@dataclass(frozen=True)
class Record:
    """A finished run."""

    table: str
    """The table that it was trained for. It counts in every table with the same run."""
    dataset: str
    model: str
    split: int
    seed: int
    val: dict[str, float]
    """All metrics on validation nodes, by name."""
    test: dict[str, float]
    """The same on test nodes."""
    best_epoch: int
    seconds: float
    settings: dict[str, Any]
    """``Config.to_dict()``. Identifies the run together with the data set."""
    versions: dict[str, str]
    measures: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    """Additional measurements of the trained model, by the name of the table."""
    code: str | None = None
    """Digest of the code that decided the run, see :mod:`dgt.experiments.code`. None in records
    from before there were digests."""
    machine: dict[str, str] = dataclasses.field(default_factory=dict)
    """The processor and more versions, see :mod:`dgt.experiments.machine`."""

    def state(self, config: Config) -> State:
        """Returns whether today's code decided the run.

        Args:
            config: Its settings.
        """
        if self.code is None:
            return "unknown"
        return "current" if same_results(self.code, digest(config), self.dataset) else "stale"


def read(path: Path) -> dict[Key, Record]:
    """Returns the recorded runs by data set and settings.

    A truncated last line, left by a killed process, is skipped with a warning. A setting that is
    newer than a line takes its default. A line with settings that no longer exist can no longer
    match any run and is skipped. If a run was repeated for its measurements, the first line counts,
    with the measurements of all lines. If it was repeated with other code, only the lines of
    today's code count or, without any, those of the code that was used last.
    """
    try:
        with open(path, "rb") as file:
            lock(file, shared=True)  # waits until no other process is writing
            *lines, rest = file.read().split(b"\n")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"{path}: cannot read: {error.strerror}") from None
    records = [_parse(line, f"{path}: line {n}") for n, line in enumerate(lines, start=1)]
    if rest and _is_whole(rest):
        records.append(_parse(rest, str(path)))
    elif rest:
        log.warning("%s: line %d was cut short and is skipped", path, len(lines) + 1)
    found: dict[Key, dict[str | None, Record]] = {}
    for record in records:
        try:
            key = record.dataset, Config.from_dict(record.settings)
        except InputError:
            continue
        by_code = found.setdefault(key, {})
        # The code that was used last comes last.
        by_code[record.code] = joined(by_code.pop(record.code, None), record)
    return {key: _newest(key, by_code) for key, by_code in found.items()}


def _newest(key: Key, by_code: dict[str | None, Record]) -> Record:
    *_, last = by_code.values()
    if len(by_code) == 1:
        return last
    today = digest(key[1])
    equal = (record for code, record in by_code.items() if same_results(code, today, key[0]))
    return by_code.get(today) or next(equal, last)


def joined(before: Record | None, record: Record) -> Record:
    """Returns the record of a run that was repeated: the first one, with the measurements of both,
    or the second one if the first one is missing or comes from other code."""
    if before is None or before.code != record.code:
        return record
    return dataclasses.replace(before, measures={**record.measures, **before.measures})


def append(path: Path, record: Record) -> None:
    """Appends a run. Several processes may do so at the same time."""
    line = json.dumps(dataclasses.asdict(record)).encode() + b"\n"
    with _open(path) as file:
        lock(file)
        _end_last_line(file)
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


def require_writable(path: Path) -> None:
    """Raises an error if the file cannot be written, before the first run is trained."""
    _open(path).close()


def _open(path: Path) -> BinaryIO:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "a+b")
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror}") from None


def _end_last_line(file: BinaryIO) -> None:
    """Ends an unfinished last line, or removes it if it is truncated."""
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
        text = line.decode()
    except UnicodeDecodeError:
        raise InputError(f"{place}: not JSON: {_start(line)!r}") from None
    values = parse_json(text, place)
    if "test_accuracy" in values:
        raise InputError(
            f"{place}: written by a version before 0.2: has 'val_accuracy' and 'test_accuracy', "
            "expected 'val' and 'test', each an object of metrics"
        )
    known = {field.name for field in dataclasses.fields(Record)}
    record = Record(**fields_of(Record, {n: v for n, v in values.items() if n in known}, place))
    for part in ("val", "test"):
        require(getattr(record, part), {"accuracy": float}, f"{place}: {part}")
    return record


def _start(line: bytes) -> str:
    return line[:40].decode(errors="replace")
