"""Signals that ask a process to end."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from dgt.errors import Terminated

# SIGHUP is sent when the terminal is closed. It does not exist on Windows.
NAMES = ("SIGTERM", "SIGHUP")


@contextmanager
def raised() -> Iterator[None]:
    """Raises :class:`~dgt.errors.Terminated` on a signal to end, like Python does on Ctrl-C.

    So temporary files are removed, worker processes are stopped, and the user is told how to
    continue. A second signal ends the process at once. Signals that are ignored, as with nohup,
    stay so.

    Python drops exceptions that are raised in a destructor, as a signal may arrive there. It is
    then raised again.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    ours = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    main = threading.get_ident()

    def reset() -> None:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)

    def handle(number: int, frame: FrameType | None) -> None:
        reset()
        raise Terminated(number)

    def dropped(what: Any) -> None:
        if not isinstance(what.exc_value, KeyboardInterrupt):
            before(what)
            return
        number = getattr(what.exc_value, "signal", signal.SIGINT)
        if number in ours:
            signal.signal(number, handle)

        def again() -> None:
            if signal.getsignal(number) in (handle, signal.default_int_handler):
                signal.pthread_kill(main, number)

        # Not at once: it would be raised here, and dropped again.
        later = threading.Timer(0.01, again)
        later.daemon = True
        later.start()

    for number in ours:
        signal.signal(number, handle)
    before, sys.unraisablehook = sys.unraisablehook, dropped
    try:
        yield
    finally:
        sys.unraisablehook = before
        reset()
