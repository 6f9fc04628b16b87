"""The memory of this machine."""

import contextlib
import ctypes
import os
from pathlib import Path

import psutil

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc
CGROUPS = (  # limit and usage in bytes, of cgroups v2 and v1; Linux only
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available() -> int:
    """Returns the number of bytes that this process may still allocate.

    This is the free memory of the machine or of its container, whichever is less, divided by the
    number of ranks on this machine.
    """
    room = [psutil.virtual_memory().available]
    for paths in CGROUPS:
        limit, usage = (_number(path) for path in paths)
        if limit is not None and usage is not None:
            room.append(limit - usage)
    return max(0, min(room) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def trim(from_now_on: bool = False) -> None:
    """Returns freed memory to the operating system. Does nothing without glibc.

    Args:
        from_now_on: Whether to also return tensors of 1 MB and more from now on as soon as they are
            freed, which is slower.
    """
    with contextlib.suppress(OSError, AttributeError):  # no glibc: macOS, musl
        library = ctypes.CDLL(None)
        if from_now_on:
            library.mallopt(MMAP_THRESHOLD, 2**20)
        library.malloc_trim(0)


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):  # no such file, or "max" for no limit
        return None
