"""The memory of this machine."""

import contextlib
import ctypes
import os
from pathlib import Path

import psutil

MMAP_THRESHOLD = -3  # glibc's number for this setting
CGROUPS = (  # of version 2 and 1: the limit, and what is in use
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def available() -> int:
    """Bytes that this process may still take, by the machine and by the limits of its container."""
    room = [psutil.virtual_memory().available]
    for limit, usage in CGROUPS:
        values = [_number(path) for path in (limit, usage)]
        if values[0] is not None and values[1] is not None:
            room.append(values[0] - values[1])
    return max(0, min(room) // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def trim(from_now_on: bool = False) -> None:
    """Gives memory that is free back to the system, where the C library would keep it; if wanted,
    tensors from 1 MB on as soon as they are free, which takes some time."""
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        library = ctypes.CDLL(None)
        if from_now_on:
            library.mallopt(MMAP_THRESHOLD, 2**20)
        library.malloc_trim(0)


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):  # no such file, or "max": no limit
        return None
