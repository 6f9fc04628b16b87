"""Commands in processes of their own, which can be killed, limited and deprived.

The processes are forked from one that has imported the package but computed nothing yet, so that
each starts in a fraction of a second.
"""

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from tests.campaign.case import Wrong, error_line

ROOT = Path(__file__).parents[2]
HANG = float(os.environ.get("DGT_CAMPAIGN_SECONDS", "60"))
"""Seconds after which a command hangs; ``make test`` allows more, for busy machines."""
PRELOAD = ["tests.campaign.preload"]
NOBODY = 65534

Setup = Callable[[], object]
"""Prepares a process before its command runs; picklable."""


@dataclass(frozen=True)
class End:
    """How a command has ended."""

    code: int
    """The exit code, or the negative number of the signal."""
    out: str
    err: str

    @property
    def message(self) -> str:
        """The text of the line ``error: ...``."""
        return error_line(self.err).strip()


class Started:
    """A running command."""

    def __init__(self, process: BaseProcess, begun: Path, readers: list[Any]) -> None:
        self._process, self._begun = process, begun
        self._texts: list[list[bytes]] = [[], []]
        self._threads = [
            threading.Thread(target=_drain, args=(reader, text), daemon=True)
            for reader, text in zip(readers, self._texts, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def alive(self) -> bool:
        return self._process.is_alive()

    def running(self) -> bool:
        """Returns whether the command itself has begun."""
        return self._begun.exists()

    def send(self, number: int) -> None:
        assert self._process.pid is not None
        if self.alive():
            os.kill(self._process.pid, number)

    def wait(self, seconds: float = HANG) -> End:
        """Waits for the end.

        Raises:
            Wrong: After a hang, a traceback, or an abort that nobody asked for.
        """
        self._process.join(seconds)
        late = self._process.is_alive()
        if late:
            self._process.kill()
            self._process.join()
        for thread in self._threads:
            thread.join(2)  # a process that it has started may still hold the pipe
        self._begun.unlink(missing_ok=True)
        code = self._process.exitcode
        assert code is not None
        out, err = (b"".join(text).decode(errors="replace") for text in self._texts)
        if late:
            raise Wrong("hang", f"over {seconds:g} s: {err[-500:]}")
        if "Traceback (most recent call last)" in err:
            raise Wrong("traceback", err[-1500:])
        if -code in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE):
            raise Wrong("abort", f"{signal.Signals(-code).name}: {err[-800:]}")
        return End(code, out, err)


def _drain(reader: Any, text: list[bytes]) -> None:
    while part := os.read(reader.fileno(), 65536):
        text.append(part)


def start(
    tokens: list[str], *setup: Setup, environment: dict[str, str | None] | None = None
) -> Started:
    """Starts ``dgt`` with these arguments in the current folder.

    Args:
        tokens: The arguments.
        *setup: What to do in the process first.
        environment: Variables to set, or to remove if None.
    """
    variables = {**os.environ, **(environment or {})}
    given = {name: value for name, value in variables.items() if value is not None}
    begun = Path(tempfile.mktemp(prefix="begun-"))
    context = _server()
    # Pipes, since a limit of the size of files would also hold for files with the output.
    pipes = [context.Pipe(duplex=False) for _ in range(2)]
    writers = [writer for _, writer in pipes]
    process = context.Process(
        target=_main, args=(tokens, os.getcwd(), given, begun, writers, setup)
    )
    process.start()
    for writer in writers:
        writer.close()
    return Started(process, begun, [reader for reader, _ in pipes])


def _server() -> Any:
    """Returns the context of the process that others are forked from, and starts it if needed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    here = os.getcwd()
    os.chdir(ROOT)  # so that it finds the modules of the tests
    try:
        forkserver.ensure_running()
    finally:
        os.chdir(here)
    return context


def run(tokens: list[str], *setup: Setup, **options: Any) -> End:
    """Runs a command to its end."""
    return start(tokens, *setup, **options).wait()


def succeed(tokens: list[str], *setup: Setup, **options: Any) -> End:
    """Runs a command that must succeed."""
    end = run(tokens, *setup, **options)
    if end.code != 0:
        raise Wrong("control refused", f"exit code {end.code}: {end.err[-800:]}")
    return end


def _main(
    tokens: list[str],
    folder: str,
    environment: dict[str, str],
    begun: Path,
    writers: list[Any],
    setup: tuple[Setup, ...],
) -> None:
    for number, writer in enumerate(writers, start=1):
        os.dup2(writer.fileno(), number)
        writer.close()
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    tempfile.tempdir = None
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    from dgt.cli import main

    begun.touch()
    for each in setup:
        each()
    code = main(tokens)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


# What setups are made of.


def checkpoints(seconds: float = 0.0) -> None:
    """Saves a checkpoint every so many seconds."""
    from dgt.training import loop

    loop.CHECKPOINT_SECONDS = seconds


def at_event(number: int, act: Setup) -> None:
    """Acts right before the n-th change of a file: opened to write, renamed or removed.

    Only files below the current folder count, not those of caches.
    """
    left, here = number, os.getcwd() + os.sep

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & 3
        if not writes and event not in ("os.rename", "os.remove", "os.mkdir", "os.rmdir"):
            return
        if not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        if not os.path.abspath(os.fsdecode(arguments[0])).startswith(here):
            return
        left -= 1
        if left == 0:
            act()

    sys.addaudithook(hook)


def send_self(number: int) -> None:
    os.kill(os.getpid(), number)
    if number != signal.SIGKILL:
        time.sleep(0.2)  # until the signal is handled


def kill_at(event: int, number: int) -> Setup:
    """Returns a setup that sends this process a signal at its n-th change of a file."""
    return partial(at_event, event, partial(send_self, number))


def limit_files(size: int) -> None:
    """Limits the size of files, as a full disk would."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def limit_memory(more: int) -> None:
    """Limits the address space to what is in use now and some more."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def become_nobody() -> None:
    """Gives up root's right to ignore permissions; does nothing for other users."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
