"""Full disks, read-only and removed folders, little memory.

Each fault gives one clear line, leaves nothing half-written, and does not keep the same command
from succeeding afterwards.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from tests.campaign.case import Case, Outcome, Wrong, listing, require_clear, require_no_parts
from tests.campaign.classes.kills import require_whole
from tests.campaign.material import FLAGS, place, predictions, require_answer
from tests.campaign.processes import (
    End,
    at_event,
    checkpoints,
    limit_files,
    limit_memory,
    run,
    succeed,
)

QUIET = ["--quiet", "--threads=1"]


LARGE = "synthetic:nodes=40000,edges=200000,features=200,classes=5"


class Skipped(Exception):
    """Why a fault cannot be made here."""


def cases() -> Iterator[Case]:
    for name, (tokens, made) in commands().items():
        for size in (0, 300, 2000):
            limited = partial(_limited, tokens, made, size)
            yield case(f"{name}, files of at most {size} bytes", limited)
        yield case(f"{name}, full disk", partial(_full, tokens))
        yield case(f"{name}, read-only folder", partial(_read_only, tokens))
    for event in (4, 6, 9, 12):
        yield case(f"train, folder removed at event {event}", partial(_removed, event))
    for more in (20, 60, 150):
        yield case(f"train, {more} MB of memory", partial(_memory, more))


def case(name: str, act: Callable[[], object]) -> Case:
    def tried() -> Outcome:
        try:
            act()
        except Skipped as error:
            return Outcome(refused=False, answer={f"skipped ({error})": 1})
        return Outcome(refused=False, answer={"faults": 1})

    return Case(name, "accepted", tried, repeat=name, seconds=300, free=True)


def commands() -> dict[str, tuple[list[str], str]]:
    """Returns commands, and the folder or file that each of them writes."""
    graph, trained = str(place() / "graph"), str(place() / "run")
    return {
        "train": (["train", graph, *QUIET, *FLAGS, "--out", "out/run"], "out/run"),
        "predict": (["predict", trained, *QUIET, "--out", "out/p.parquet"], "out/p.parquet"),
        "predict CSV": (["predict", trained, *QUIET, "--out", "out/p.csv"], "out/p.csv"),
        "explain": (["explain", trained, "n3", "--out", "out/f.png"], "out/f.png"),
        "prepare": (["prepare", graph, *QUIET, *FLAGS, "--out", "out/cache"], "out/cache"),
    }  # fmt: skip


def require_failure(end: End, *names: str) -> None:
    """Raises :class:`Wrong` unless a command has failed with one clear line."""
    if end.code not in (1, 2):
        raise Wrong(f"exit code {end.code}", f"expected 1 or 2: {end.err[-500:]}")
    if not end.message:
        raise Wrong("message", f"no line 'error: ...': {end.err[-500:]!r}")
    require_clear(end.message, names)


def recovered(tokens: list[str]) -> None:
    """The same command succeeds, and its answer is right."""
    succeed(tokens)
    require_no_parts(listing(Path("out")))
    if tokens[0] == "train":
        require_answer(predictions("out/run/predictions.parquet"))
    elif tokens[-1].endswith(".parquet"):
        require_answer(predictions(tokens[-1]))


def _limited(tokens: list[str], made: str, size: int) -> None:
    Path("out").mkdir()
    end = run(tokens, partial(limit_files, size))
    if end.code != 0:
        require_failure(end, "out|run|p.|f.png|cache")
        require_no_parts(listing(Path("out")))
        require_whole(Path("out"))
        if tokens[0] != "prepare" and Path(made).exists():
            raise Wrong("files left", f"{made}: {sorted(p.name for p in Path(made).rglob('*'))}")
    else:
        shutil.rmtree("out")
    recovered(tokens)


@contextlib.contextmanager
def _mounted(*commands: str) -> Iterator[None]:
    """Mounts something on the folder ``out``, where that is allowed."""
    Path("out").mkdir(exist_ok=True)
    mounted = 0
    try:
        for each in commands:
            if subprocess.run(
                ["mount", *each.split()], capture_output=True, check=False
            ).returncode:
                raise Skipped("mounting is not allowed")
            mounted = 1
        yield
    finally:
        if mounted:
            subprocess.run(["umount", "out"], capture_output=True, check=True)


def _full(tokens: list[str]) -> None:
    with _mounted("-t tmpfs -o size=24k tmpfs out"):
        Path("out/ballast").write_bytes(bytes(18_000))
        end = run(tokens)
        if end.code != 0:
            require_failure(end, "out|run|p.|f.png|cache")
            require_no_parts(listing(Path("out")))
            require_whole(Path("out"))
    recovered(tokens)


def _read_only(tokens: list[str]) -> None:
    with _mounted("--bind out out", "-o remount,ro,bind out"):
        end = run(tokens)
    require_failure(end, "out|run|p.|f.png|cache")
    if any(Path("out").iterdir()):
        raise Wrong("files left", str(list(Path("out").iterdir())))
    recovered(tokens)


def _removed(event: int) -> None:
    tokens = commands()["train"][0]
    remove = partial(shutil.rmtree, "out/run", ignore_errors=True)
    end = run(tokens, checkpoints, partial(at_event, event, remove))
    if end.code == 0:
        raise Wrong("answered", f"exit code 0, left: {sorted(listing(Path('out')))}")
    require_failure(end, "run")
    if Path("out/run/metrics.json").exists():
        raise Wrong("half-written", str(sorted(listing(Path("out")))))
    shutil.rmtree("out", ignore_errors=True)
    recovered(tokens)


def _memory(more: int) -> None:
    tokens = ["train", LARGE, *QUIET, *FLAGS, "--out", "out/run"]
    end = run(tokens, partial(limit_memory, more * 2**20))
    if end.code != 0:
        require_failure(end, "memory|GB|MB|allocate")
        if Path("out/run").exists():
            raise Wrong("files left", str(sorted(listing(Path("out")))))
