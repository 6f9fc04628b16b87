"""Signals that ask a process to end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dgt.errors import Terminated

# SIGHUP is sent when the terminal is closed. It does not exist on Windows.
NAMES = ("SIGTERM", "SIGHUP")


@contextmanager
def raised() -> Iterator[None]:
    """Raises :class:`~dgt.errors.Terminated` on a signal to end, like Python does on Ctrl-C.

    So temporary files are removed, worker processes are stopped, and the user is told how to
    continue. A second signal ends the process at once. Signals that are ignored, as with nohup,
    stay so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def reset() -> None:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)

    def handle(number: int, frame: FrameType | None) -> None:
        reset()
        raise Terminated(number)

    for number in ours:
        signal.signal(number, handle)
    try:
        yield
    finally:
        reset()
