"""Cases whose outcome is wrong on purpose, to test that the campaign sees it."""

import os
import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.campaign.case import Case, Outcome
from tests.campaign.hostile import Hostile
from tests.campaign.judge import call, command


def refuse(message: str) -> Callable[[], None]:
    def act() -> None:
        raise ValueError(message)

    return act


def fail() -> None:
    raise TypeError("not expected")


def write_and_refuse() -> None:
    Path("left.txt").write_text("x")
    raise ValueError("place: value")


def cases() -> Iterator[Case]:
    """Yields cases named by the verdict that they must get; "right" if it is right."""
    yield Case(
        "right: refused", "refused", call(refuse("place: value")), names=("place", "value|x")
    )
    yield Case("right: accepted", "accepted", command("--version"))
    yield Case("traceback", "refused", call(fail))
    yield Case("answered", "refused", call(lambda: 3))
    yield Case("control refused", "accepted", call(refuse("place: value")))
    yield Case("message: two lines", "refused", call(refuse("one\ntwo")))
    yield Case("message: no place", "refused", call(refuse("wrong")), names=("nodes.csv",))
    yield Case("message: too long", "refused", call(refuse("x" * 5000)))
    yield Case("message: not printable", "refused", call(refuse("a\x1b[2Jb")))
    yield Case("files left", "refused", call(write_and_refuse))
    yield Case("code executed", "either", call(lambda: pickle.loads(pickle.dumps(Hostile()))))
    yield Case("wrong answer", "accepted", call(lambda: 3), check=_is_two)
    yield Case("exit code 1", "refused", lambda: _ended(1))
    yield Case("abort", "refused", call(os.abort))
    yield Case("hang", "refused", call(lambda: time.sleep(60)), seconds=1)


def _is_two(answer: int) -> None:
    assert answer == 2


def _ended(code: int) -> Outcome:
    from tests.campaign.judge import finished

    return finished(code, "", "error: disk\n")
