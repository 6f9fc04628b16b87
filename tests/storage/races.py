"""Rounds of processes that do the same thing at the same time.

``python -m tests.storage.races FOLDER KIND=ROUNDS ...`` prints one line of JSON per round: the kind
and the result of each process. Processes are forked here, in a program without threads, so that a
round is cheap.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from dgt.errors import InputError

PROCESSES = 4


def race(act: Callable[[Callable[[], None]], str]) -> list[str]:
    """Calls ``act(wait)`` in several processes at once and returns the results.

    ``wait()`` returns when all processes have a result or are waiting.
    """
    start = time.monotonic() + 0.01
    go_read, go_write = os.pipe()
    pipes = []
    for _ in range(PROCESSES):
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(go_write)

            def wait(write: int = write) -> None:
                os.write(write, b".")
                os.read(go_read, 1)

            while time.monotonic() < start:
                pass
            try:
                result = act(wait)
            except InputError as error:
                result = f"refused: {error}"
            os.write(write, result.encode())
            os._exit(0)
        os.close(write)
        pipes.append(read)
    first = [os.read(pipe, 2**16) for pipe in pipes]  # a dot, or the result
    os.close(go_write)
    results = []
    for pipe, begun in zip(pipes, first, strict=True):
        while more := os.read(pipe, 2**16):
            begun += more
        os.close(pipe)
        results.append(begun.decode().lstrip("."))
    os.close(go_read)
    for _ in range(PROCESSES):
        os.wait()
    return results


def claims(folder: Path) -> Callable[[Callable[[], None]], str]:
    from dgt.storage.claims import Claim

    def act(wait: Callable[[], None]) -> str:
        held = Claim(folder, "busy")
        wait()
        held.require_held()
        held.release()
        return "won"

    return act


def turns(folder: Path) -> Callable[[Callable[[], None]], str]:
    """Each process claims the folder many times; two owners would meet at the same file."""
    from dgt.storage.claims import Claim

    def act(wait: Callable[[], None]) -> str:
        owned = 0
        while owned < 10:
            try:
                held = Claim(folder, "busy")
            except InputError:
                continue
            os.close(os.open(folder / "owner", os.O_CREAT | os.O_EXCL))
            os.unlink(folder / "owner")
            held.release()
            owned += 1
        return "won"

    return act


def files(folder: Path) -> Callable[[Callable[[], None]], str]:
    from dgt.storage.files import write_atomically

    def act(wait: Callable[[], None]) -> str:
        text = f"{os.getpid()} " * 1000
        write_atomically(folder / "out.csv", lambda path: path.write_text(text), replace=False)
        wait()
        assert (folder / "out.csv").read_text() == text
        return "won"

    return act


def names(folder: Path) -> Callable[[Callable[[], None]], str]:
    from dgt.runs.many import free_folder

    folder.mkdir()

    def act(wait: Callable[[], None]) -> str:
        os.chdir(folder)
        with free_folder("cora") as path:
            wait()
            return path.name

    return act


def runs(folder: Path, **how: bool) -> Callable[[Callable[[], None]], str]:
    from dgt.config import Config
    from dgt.runs.files import Settings
    from dgt.runs.folder import RunFolder

    settings = Settings(Config.of("dgt"), "cora")
    if how:
        with RunFolder(folder) as run:
            run.claim(settings)
            run.begin()

    def act(wait: Callable[[], None]) -> str:
        with RunFolder(folder) as run:
            run.claim(settings, **how)
            run.begin()
            wait()
            run.complete({"owner": os.getpid()})
        return "won"

    return act


def searches(folder: Path) -> Callable[[Callable[[], None]], str]:
    from dgt.config import Config
    from dgt.tune.display import quiet
    from dgt.tune.folder import claim, identity

    def act(wait: Callable[[], None]) -> str:
        search = identity("cora", Config.of("dgt").replace(metric="accuracy"), {}, None, 1)
        with quiet(), claim(folder, search) as study:
            wait()
            study.ask()
        return "won"

    return act


KINDS: dict[str, Callable[[Path], Callable[[Callable[[], None]], str]]] = {
    "claims": claims,
    "turns": turns,
    "files": files,
    "names": names,
    "runs": runs,
    "resumes": lambda folder: runs(folder, resume=True),
    "overwrites": lambda folder: runs(folder, overwrite=True),
    "searches": searches,
}

if __name__ == "__main__":
    for given in sys.argv[2:]:
        kind, _, count = given.partition("=")
        for number in range(int(count)):
            folder = Path(sys.argv[1]) / kind / str(number)
            folder.parent.mkdir(exist_ok=True)
            print(json.dumps([kind, race(KINDS[kind](folder))]), flush=True)
