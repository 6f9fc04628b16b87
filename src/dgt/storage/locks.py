"""File locks."""

from typing import IO, Any

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]


def lock(file: IO[Any], *, shared: bool = False, wait: bool = True) -> bool:
    """Locks an open file against other processes until it is closed.

    On platforms without such locks (Windows), this does nothing.

    Args:
        file: The open file.
        shared: Allow other processes to hold shared locks at the same time.
        wait: Wait until the lock is free.

    Returns:
        Whether the lock was acquired; always true with :obj:`wait`.
    """
    if fcntl is None:
        return True
    mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, mode if wait else mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
