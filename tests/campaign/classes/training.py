"""Cases that train on a graph that was changed, and what must come of it."""

import shlex
from collections.abc import Callable
from typing import Any

from tests.campaign.case import Case, Expect
from tests.campaign.judge import command
from tests.campaign.material import FLAGS, predictions, require_answer


def train(
    name: str,
    expect: Expect,
    prepare: Callable[[], object],
    names: tuple[str, ...] = (),
    check: Callable[[Any], object] | None = None,
    graph: str = "graph",
) -> Case:
    """Returns a case that trains on a folder or file, which ``prepare`` writes."""
    tokens = ["train", graph, "--out", "run", "--quiet", *FLAGS]
    repeat = f"dgt {shlex.join(tokens)}"
    check = check or (lambda _: same("run" if graph == "graph" else "arrays"))
    return Case(name, expect, command(*tokens), prepare, names, check, repeat)


def same(run: str = "run") -> None:
    """The answer must be that for the unchanged graph."""
    require_answer(predictions("run/predictions.parquet"), run)


def some() -> None:
    """The answer must be a prediction for each of the remaining nodes."""
    found = predictions("run/predictions.parquet")
    assert found, "no predictions"
    assert all(0 < share <= 1 for _, share in found.values())
