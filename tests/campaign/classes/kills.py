"""Kills and signals at random moments; afterwards, the same command ends with the same bits."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from dgt.storage.tensors import read_tensors
from tests.campaign.case import Case, Outcome, Wrong, listing, require_no_parts
from tests.campaign.material import LONGER, place, predictions
from tests.campaign.processes import HANG, Setup, checkpoints, kill_at, start, succeed

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ROOT = Path(__file__).parents[3]
MORE = [flag for flag in LONGER if "--epochs" not in flag]


def cases() -> Iterator[Case]:
    for seed in range(16):
        yield _case(f"train {seed}", partial(_train, seed, [*LONGER], 3))
    for seed in range(8):
        yield _case(f"train at a time {seed}", partial(_train, seed, [*MORE, "--epochs=150"], 2))
    for seed in range(6):
        yield _case(f"train --runs {seed}", partial(_train, seed, [*LONGER, "--runs=2"], 3))
    for seed in range(8):
        yield _case(f"prepare {seed}", partial(_prepare, seed))
    for seed in range(12):
        yield _case(f"predict {seed}", partial(_predict, seed))
    for seed in range(4):
        yield _case(f"tune {seed}", partial(_tune, seed))
    for seed in range(3):
        yield _case(f"torchrun {seed}", partial(_torchrun, seed))


def _case(name: str, act: Callable[[], int]) -> Case:
    def tried() -> Outcome:
        return Outcome(refused=False, answer={"kills": act()})

    return Case(name, "accepted", tried, repeat=name, seconds=600, free=True)


def _graph() -> str:
    return str(place() / "graph")


def strike(tokens: list[str], rng: random.Random, events: int, seconds: float | None) -> bool:
    """Runs a command and kills it; returns whether it was still running.

    Args:
        tokens: The command.
        rng: Draws the signal and the moment.
        events: Upper bound of the change of a file at which the command is killed.
        seconds: Upper bound of the time at which it is killed instead.
    """
    number = rng.choice(SIGNALS)
    if seconds is None:
        setup: list[Setup] = [checkpoints, kill_at(rng.randint(1, events), number)]
        end = start(tokens, *setup).wait()
    else:
        command = start(tokens, partial(checkpoints, 0.02))
        deadline = time.monotonic() + HANG
        while not command.running() and command.alive() and time.monotonic() < deadline:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, seconds))
        command.send(number)
        end = command.wait()
    if end.code == 0:
        return False
    if end.code not in (-number, 128 + number):
        raise Wrong(f"exit code {end.code}", f"after {number!r}: {end.err[-800:]}")
    return True


def _train(seed: int, flags: list[str], kills: int) -> int:
    """Kills training several times, then lets it end; returns the number of kills."""
    rng = random.Random(f"train {seed} {flags}")
    several, timed = "--runs=2" in flags, "--epochs=150" in flags
    tokens = ["train", _graph(), "--quiet", "--resume", "--threads=1", *flags, "--out"]
    started = time.monotonic()
    succeed([*tokens, "whole"])
    seconds = time.monotonic() - started if timed else None
    struck = 0
    for _ in range(kills):
        struck += strike([*tokens, "run"], rng, 24 * (1 + several), seconds)
        require_whole(Path("run"))
    succeed([*tokens, "run"])
    for folder in ("run-00", "run-01") if several else (".",):
        require_same(Path("run", folder), Path("whole", folder))
    return struck


def require_whole(folder: Path) -> None:
    """Raises :class:`Wrong` if a file is there but not whole."""
    for path in folder.rglob("*") if folder.exists() else ():
        if not path.is_file() or path.name.startswith("."):
            continue
        try:
            if path.suffix == ".safetensors":
                read_tensors(path)
            elif path.suffix == ".json":
                json.loads(path.read_text())
            elif path.suffix == ".parquet":
                predictions(path)
        except Exception as error:
            raise Wrong("half-written", f"{path}: {error}") from None


def require_same(out: Path, whole: Path) -> None:
    """Raises :class:`Wrong` unless two runs are equal, bit for bit, except for their times."""
    names = [sorted(p.name for p in folder.iterdir()) for folder in (out, whole)]
    if names[0] != names[1]:
        raise Wrong("files left", f"{names[0]}, expected {names[1]}")
    for name in names[0]:
        contents = [(folder / name).read_bytes() for folder in (out, whole)]
        if name == "metrics.json":
            contents = [_without_times(content) for content in contents]
        if contents[0] != contents[1]:
            raise Wrong("other bits", f"{out / name} differs from that of an uninterrupted run")


def _without_times(content: bytes) -> bytes:
    document = json.loads(content)
    for each in (document, *document.get("runs", [])):
        each.pop("seconds", None)
    return json.dumps(document).encode()


def _prepare(seed: int) -> int:
    rng = random.Random(f"prepare {seed}")
    graph = "synthetic:nodes=600,edges=1500,features=8,classes=3"
    tokens = ["prepare", graph, "--quiet", "--threads=1", "--length=4", "--out"]
    succeed([*tokens, "whole"])
    struck = sum(strike([*tokens, "cache"], rng, 12, None) for _ in range(2))
    succeed([*tokens, "cache"])
    names = [[n for n, about in listing(Path(f)).items() if about] for f in ("cache", "whole")]
    if names[0] != names[1]:
        raise Wrong("files left", f"{set(names[0]) ^ set(names[1])}")
    for name in names[0]:
        if Path("cache", name).read_bytes() != Path("whole", name).read_bytes():
            raise Wrong("other bits", name)
    return struck


def _predict(seed: int) -> int:
    rng = random.Random(f"predict {seed}")
    suffix = rng.choice(("csv", "parquet"))
    shutil.copytree(place() / "run", "run")
    tokens = ["predict", "run", "--quiet", "--threads=1", "--overwrite", "--out"]
    succeed([*tokens, f"whole.{suffix}"])
    expected = Path(f"whole.{suffix}").read_bytes()
    out = Path("made", f"p.{suffix}")
    out.parent.mkdir()
    struck = strike([*tokens, str(out)], rng, 3, None if seed % 2 else 0.3)
    if out.exists() and out.read_bytes() != expected:
        raise Wrong("half-written", str(out))
    succeed([*tokens, str(out)])
    if out.read_bytes() != expected:
        raise Wrong("other bits", str(out))
    require_no_parts(listing(out.parent))
    return struck


def _tune(seed: int) -> int:
    """Kills a search over a grid, whose result does not depend on the order of its trials."""
    rng = random.Random(f"tune {seed}")
    few = ["--lr=0.01", "--hidden-channels=8", "--epochs=2", "--device=cpu"]
    tokens = ["tune", _graph(), "--quiet", "--model=mlp", "--grid=paper", "--runs=1", "--workers=1"]
    tokens += [*few, "--trials=3", "--out"]
    succeed([*tokens, "whole"])
    struck = sum(strike([*tokens, "search"], rng, 14, None) for _ in range(2))
    succeed([*tokens, "search"])
    found = [_trials(Path(folder)) for folder in ("search", "whole")]
    if found[0] != found[1]:
        raise Wrong("other bits", f"{found[0]} != {found[1]}")
    require_no_parts(listing(Path("search")))
    return struck


def _trials(folder: Path) -> dict[str, list[float]]:
    lines = map(json.loads, (folder / "trials.jsonl").read_text().splitlines())
    done = {json.dumps(t["settings"]): t["values"] for t in lines if t["state"] == "complete"}
    return dict(sorted(done.items()))


def _torchrun(seed: int) -> int:
    """Kills one of two processes that train together."""
    rng = random.Random(f"torchrun {seed}")
    tokens = ["train", _graph(), "--quiet", "--resume", *LONGER, "--out"]
    _launch([*tokens, "whole"])
    struck = 0
    for _ in range(2):
        rank, event = rng.randint(0, 1), rng.randint(2, 16)
        struck += not _launch([*tokens, "run"], f"{rank} {event} {int(rng.choice(SIGNALS[:3]))}")
        require_whole(Path("run"))
    _launch([*tokens, "run"])
    require_same(Path("run"), Path("whole"))
    return struck


def _launch(tokens: list[str], kill: str | None = None) -> bool:
    """Runs a command with torchrun; returns whether it succeeded."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    if kill is not None:
        environment["DGT_CAMPAIGN_KILL"] = kill
    try:
        end = subprocess.run(
            [*launch, "-m", "tests.campaign.rank", *tokens],
            env=environment,
            capture_output=True,
            text=True,
            timeout=3 * HANG,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Wrong("hang", "torchrun") from None
    if end.returncode != 0 and kill is None:
        raise Wrong(f"exit code {end.returncode}", end.stderr[-1500:])
    return end.returncode == 0
