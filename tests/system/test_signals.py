"""Signals that ask a process to end."""

import os
import signal
import sys
import time
from typing import Any

import pytest

from dgt.errors import Terminated
from dgt.system.signals import raised

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs signals")


class Struck:
    """A signal arrives while it is destroyed."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)
        for _ in range(1000):
            pass


@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGTERM, Terminated), (signal.SIGINT, KeyboardInterrupt)]
)
def test_a_signal_in_a_destructor_is_not_lost(number: int, expected: type[BaseException]) -> None:
    def work() -> None:
        Struck(number)
        time.sleep(60)  # without the second exception, all of it

    started = time.monotonic()
    with pytest.raises(expected) as caught, raised():
        work()
    assert type(caught.value) is expected
    assert time.monotonic() - started < 30


def test_other_exceptions_in_a_destructor_are_reported_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Wrong:
        def __del__(self) -> None:
            raise RuntimeError("wrong")

    seen: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: seen.append(what.exc_value))
    with raised():
        Wrong()
    assert [str(error) for error in seen] == ["wrong"]


def test_handlers_and_hook_are_restored() -> None:
    before = sys.unraisablehook, signal.getsignal(signal.SIGTERM)
    with pytest.raises(Terminated), raised():
        os.kill(os.getpid(), signal.SIGTERM)
    assert (sys.unraisablehook, signal.getsignal(signal.SIGTERM)) == before
