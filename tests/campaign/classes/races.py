"""Several processes at once in one folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.campaign.case import Case, Wrong, listing, require_no_parts
from tests.campaign.classes.faults import QUIET, case, commands, require_failure
from tests.campaign.material import FLAGS, copy, place, predictions, require_answer
from tests.campaign.processes import (
    End,
    Setup,
    checkpoints,
    run,
    start,
    succeed,
)


def cases() -> Iterator[Case]:
    for seed in range(6):
        yield case(f"train, three claim one folder {seed}", _claimed)
    yield case("train, three default folders at once", _default_folders)
    yield case("tune, two in one folder", _two_searches)
    yield case("prepare, two in one cache", _two_caches)
    yield case("predict, three into one file", _three_predictions)
    yield case("train, one reads while another writes", _read_while_written)


def _at_once(count: int, tokens: Callable[[int], list[str]], *setup: Setup) -> list[End]:
    """Runs commands at the same time."""
    started = [start(tokens(i), *setup) for i in range(count)]
    return [each.wait() for each in started]


def _claimed() -> None:
    tokens = commands()["train"][0]
    ends = _at_once(3, lambda _: tokens)
    won = [end for end in ends if end.code == 0]
    if len(won) != 1:
        raise Wrong("race", f"{len(won)} of 3 processes own the folder")
    for end in ends:
        if end.code != 0:
            require_failure(end, "out/run")
    require_answer(predictions("out/run/predictions.parquet"))
    require_no_parts(listing(Path("out")))


def _default_folders() -> None:
    copy("graph")
    ends = _at_once(3, lambda _: ["train", "graph", *QUIET, *FLAGS])
    if [end.code for end in ends] != [0, 0, 0]:
        raise Wrong("race", "; ".join(f"{end.code}: {end.message}" for end in ends))
    made = sorted(p.name for p in Path("runs").iterdir())
    if made != ["graph-1", "graph-2", "graph-3"]:
        raise Wrong("race", f"folders {made}")
    for name in made:
        require_answer(predictions(Path("runs", name, "predictions.parquet")))


def _two_searches() -> None:
    graph = str(place() / "graph")
    few = ["--model=mlp", "--trials=1", "--runs=1", "--workers=1", "--epochs=2", "--device=cpu"]
    ends = _at_once(2, lambda _: ["tune", graph, "--quiet", *few, "--out", "out"])
    if 0 not in [end.code for end in ends]:
        raise Wrong("race", "; ".join(end.message for end in ends))
    for end in ends:
        if end.code != 0:
            require_failure(end, "out")
    lines = Path("out/trials.jsonl").read_text().splitlines()
    if len(lines) != 1:
        raise Wrong("race", f"{len(lines)} trials")


def _two_caches() -> None:
    tokens = commands()["prepare"][0]
    for end in _at_once(2, lambda _: tokens):
        if end.code != 0:
            raise Wrong("race", end.message)
    succeed([*tokens[:-1], "alone"])
    names = [[n for n, about in listing(Path(f)).items() if about] for f in ("out/cache", "alone")]
    if names[0] != names[1]:
        raise Wrong("files left", str(set(names[0]) ^ set(names[1])))
    for name in names[1]:
        if Path("out/cache", name).read_bytes() != Path("alone", name).read_bytes():
            raise Wrong("other bits", name)


def _three_predictions() -> None:
    tokens = commands()["predict"][0]
    ends = _at_once(3, lambda _: tokens)
    if all(end.code for end in ends):
        raise Wrong("race", "; ".join(end.message for end in ends))
    for end in ends:
        if end.code != 0:
            require_failure(end, "p.parquet")
    require_answer(predictions("out/p.parquet"))
    require_no_parts(listing(Path("out")))


def _read_while_written() -> None:
    tokens, _ = commands()["train"]
    writer = start([*tokens, "--seed=0"], checkpoints)
    while writer.alive():
        end = run(["predict", "out/run", *QUIET, "--overwrite", "--out", "p.parquet"])
        if end.code == 0:
            require_answer(predictions("p.parquet"))
        else:
            require_failure(end, "out/run")
    if writer.wait().code != 0:
        raise Wrong("race", "the writer failed")
