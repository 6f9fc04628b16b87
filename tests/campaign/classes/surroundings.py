"""Odd surroundings: variables, standard streams and permissions."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.campaign.case import Case, Wrong
from tests.campaign.classes.faults import QUIET, Skipped, case, commands, recovered, require_failure
from tests.campaign.material import FLAGS, copy, place, predictions, require_answer
from tests.campaign.processes import (
    Setup,
    become_nobody,
    run,
)


def cases() -> Iterator[Case]:
    """Yields odd surroundings in which a command must work, or say why not."""
    train = lambda: commands()["train"][0]

    def works(*setup: Setup, **variables: str | None) -> None:
        end = run(train(), *setup, environment=dict(variables))
        if end.code != 0:
            raise Wrong("control refused", f"exit code {end.code}: {end.err[-500:]}")
        require_answer(predictions("out/run/predictions.parquet"))

    def fails(*setup: Setup, name: str, **variables: str | None) -> None:
        end = run(train(), *setup, environment=dict(variables))
        if end.code != 0:
            require_failure(end, name)
        recovered(train() if end.code else [*train(), "--overwrite"])

    def streams(redirection: str, *codes: int) -> None:
        """Standard output or error is closed, or a full disk."""
        dgt = f"{shlex.quote(sys.executable)} -m dgt {shlex.join(train())} {redirection}"
        end = subprocess.run(["sh", "-c", dgt], capture_output=True, text=True, check=False)
        if end.returncode not in codes or "Traceback" in end.stderr or "ignored" in end.stderr:
            raise Wrong(f"exit code {end.returncode}", end.stderr[-800:])
        require_answer(predictions("out/run/predictions.parquet"))

    def reader_gone() -> None:
        """``dgt info | head -0``."""
        reading, writing = os.pipe()
        os.close(reading)
        launch = [sys.executable, "-m", "dgt", "info", str(place() / "graph")]
        end = subprocess.run(launch, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
        os.close(writing)
        if end.returncode not in (141, 1) or "Traceback" in end.stderr:
            raise Wrong(f"exit code {end.returncode}", end.stderr[-800:])

    def as_nobody() -> None:
        """A container without a home folder in which only the output folder can be written."""
        require_root()
        open_up(Path.cwd())
        Path(tempfile.gettempdir()).chmod(0o777)
        Path("out").mkdir()
        Path("out").chmod(0o777)
        works(become_nobody, HOME="/nonexistent", DGT_CACHE=None, XDG_CACHE_HOME=None)

    def unreadable(file: str) -> None:
        require_root()
        open_up(Path.cwd())
        copy("graph")
        Path("graph", file).chmod(0)
        Path("out").mkdir()
        Path("out").chmod(0o777)
        end = run(["train", "graph", *QUIET, *FLAGS, "--out", "out/run"], become_nobody)
        require_failure(end, file)

    yield case(
        "train, the cache is a file",
        lambda: (Path("c").write_text("x"), fails(name="c", DGT_CACHE="c")),
    )
    yield case(
        "train, the cache cannot be created",
        partial(fails, name="proc", DGT_CACHE="/proc/nothing/x"),
    )
    yield case("train, no HOME", partial(works, HOME=None, DGT_CACHE=None, XDG_CACHE_HOME=None))
    yield case(
        "train, HOME is missing",
        partial(works, HOME="/nonexistent", DGT_CACHE=None, XDG_CACHE_HOME=None),
    )
    yield case("train, TMPDIR is missing", partial(works, TMPDIR="/nonexistent"))
    yield case("train, an empty DGT_CACHE", partial(works, DGT_CACHE=""))
    yield case(
        "train, ASCII only", partial(works, LC_ALL="C", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    )
    yield case("train, stdout closed", partial(streams, ">&-", 0))
    yield case("train, stderr closed", partial(streams, "2>&-", 0))
    yield case("train, stdout on a full disk", partial(streams, ">/dev/full", 1))
    yield case("train, stderr on a full disk", partial(streams, "2>/dev/full", 0, 1))
    yield case("info, the reader has gone", reader_gone)
    yield case("train, as nobody without a home", as_nobody)
    yield case("train, nodes.csv cannot be read", partial(unreadable, "nodes.csv"))
    yield case("train, edges.csv cannot be read", partial(unreadable, "edges.csv"))


def require_root() -> None:
    """To drop the rights of root, one must have them, and Python must run without them."""
    if os.getuid() != 0:
        raise Skipped("needs root")
    prefix = Path(sys.base_prefix)
    if any(each.stat().st_mode & 0o005 != 0o005 for each in (prefix, *prefix.parents)):
        raise Skipped("the interpreter can only be read by its owner")


def open_up(folder: Path) -> None:
    """Lets everybody enter a folder, but not write to it."""
    for each in (folder, *folder.parents):
        mode = each.stat().st_mode
        if mode & 0o555 != 0o555 and Path(tempfile.gettempdir()).parent in (each, *each.parents):
            each.chmod(mode | 0o555)
