"""Runs one case in a new folder and judges its outcome."""

import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from dgt.config import CRITERIA, ENCODINGS, METRICS, MODELS
from dgt.system import plugins
from tests.campaign.case import (
    PYTHON_WARNING,
    Case,
    Outcome,
    Verdict,
    Wrong,
    error_line,
    listing,
    require_clear,
    require_no_parts,
    require_unchanged,
)
from tests.campaign.hostile import CANARY


def command(*tokens: str) -> Callable[[], Outcome]:
    """Returns an action that runs ``dgt`` with these arguments in this process."""

    def act() -> Outcome:
        from dgt.cli import main

        start = STREAMS.position()
        try:
            code = main(list(tokens))
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        out, err = STREAMS.since(start)
        return finished(code, out, err)

    return act


def finished(code: int, out: str, err: str) -> Outcome:
    """Returns the outcome of a command by its exit code and its output."""
    if "Traceback (most recent call last)" in err + out:
        raise Wrong("traceback", (err + out)[-1500:])
    warned = PYTHON_WARNING.search(err)
    if warned:
        raise Wrong("python warning", warned[0][:400])
    if code == 0:
        return Outcome(refused=False, answer=out)
    if code != 2:
        raise Wrong(f"exit code {code}", err[-800:])
    message = error_line(err)
    if not message:
        raise Wrong("message", f"no line 'error: ...': {err[-400:]!r}")
    return Outcome(refused=True, message=message)


def call(function: Callable[[], Any]) -> Callable[[], Outcome]:
    """Returns an action that calls a function; a ValueError is a refusal."""

    def act() -> Outcome:
        start = STREAMS.position()
        try:
            answer = function()
        except ValueError as error:
            return Outcome(refused=True, message=str(error))
        warned = PYTHON_WARNING.search(STREAMS.since(start)[1])
        if warned:
            raise Wrong("python warning", warned[0][:400])
        return Outcome(refused=False, answer=answer)

    return act


def judge(klass: str, case: Case, keep: Path | None = None) -> Verdict:
    """Runs a case.

    Args:
        klass: Name of its class.
        case: The case.
        keep: Folder to run it in, which is kept (default: a temporary one).
    """
    folder = keep or Path(tempfile.mkdtemp(prefix="case-"))
    folder.mkdir(parents=True, exist_ok=True)
    notes: dict[str, int] = {}
    wrong: str | None = None
    detail = ""
    try:
        with _isolated(folder):
            notes = _try(case, folder) or {}
    except Wrong as error:
        wrong, detail = error.args[0], error.args[1]
    except AssertionError as error:
        wrong, detail = "wrong answer", str(error)[:1500] or traceback.format_exc()[-800:]
    except MemoryError:
        wrong, detail = "traceback", traceback.format_exc()[-1500:]
    except Exception:
        wrong, detail = "traceback", traceback.format_exc()[-1500:]
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    return Verdict(klass, case.name, case.expect == "accepted", wrong, detail, case.repeat, notes)


def _try(case: Case, folder: Path) -> dict[str, int] | None:
    case.prepare()
    if case.free:
        return case.act().answer
    before, temporary = listing(folder), _temporary(folder)
    outcome = case.act()
    after = listing(folder)
    if outcome.refused:
        if case.expect == "accepted":
            raise Wrong("control refused", outcome.message[:800])
        require_clear(outcome.message, case.names)
        require_unchanged(before, after)
        # A file that the message names holds the traceback of the user's own code.
        named = {n: v for n, v in _temporary(folder).items() if n not in outcome.message}
        require_unchanged(temporary, named)
    else:
        if case.expect == "refused":
            raise Wrong("answered", str(outcome.answer)[-300:])
        require_no_parts(after)
        case.check(outcome.answer)
    return None


def _temporary(folder: Path) -> dict[str, Any]:
    """Lists the temporary files, without those of the case itself and of PyG's own."""
    found = listing(Path(tempfile.gettempdir()))
    return {
        name: about
        for name, about in found.items()
        if name.split("/")[0] != folder.name and "_propagate_" not in name
    }


@contextlib.contextmanager
def _isolated(folder: Path) -> Iterator[None]:
    """Makes a folder the current one, and restores the state of this process afterwards."""
    threads, back = torch.get_num_threads(), Path.cwd()
    choices = [(each, dict(each._entries)) for each in (CRITERIA, ENCODINGS, METRICS, MODELS)]
    variables = dict(os.environ)
    modules, imported = set(sys.modules), dict(plugins._loaded)
    canary = Path(os.environ[CANARY])
    os.chdir(folder)
    try:
        yield
        if canary.exists():
            raise Wrong("code executed", "the file's code has run")
    finally:
        os.chdir(back)
        canary.unlink(missing_ok=True)
        os.environ.clear()
        os.environ.update(variables)
        torch.set_num_threads(threads)
        plugins._loaded.clear()
        plugins._loaded.update(imported)
        for each, entries in choices:
            each._entries.clear()
            each._entries.update(entries)
        for name in set(sys.modules) - modules:
            if name.startswith("own_"):  # the modules of the cases themselves
                del sys.modules[name]
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Streams:
    """Standard output and error of this process, as files that can be read."""

    def __init__(self) -> None:
        self._paths: tuple[Path, Path] | None = None

    def capture(self, folder: Path) -> None:
        """Redirects the output, also that of native code, into files."""
        self._paths = (folder / "stdout", folder / "stderr")
        for number, path in enumerate(self._paths, start=1):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(descriptor, number)
            os.close(descriptor)
        for name, number in (("stdout", 1), ("stderr", 2)):
            raw = io.FileIO(number, "w", closefd=False)
            text = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", line_buffering=True)
            setattr(sys, name, text)

    def position(self) -> tuple[int, int]:
        """Returns the present lengths of both files."""
        sys.stdout.flush()
        sys.stderr.flush()
        if self._paths is None:
            raise RuntimeError("call capture first")
        return self._paths[0].stat().st_size, self._paths[1].stat().st_size

    def since(self, start: tuple[int, int]) -> tuple[str, str]:
        """Returns what was written to both since a position."""
        self.position()
        assert self._paths is not None
        texts = (path.read_bytes()[at:] for path, at in zip(self._paths, start, strict=True))
        out, err = (text.decode(errors="replace") for text in texts)
        return out, err


STREAMS = Streams()
