"""The memory of this machine."""

import contextlib
import ctypes
import errno
import os
import re
from pathlib import Path

import psutil

from dgt.errors import MemoryNeeded

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of glibc
CGROUPS = (  # limit and usage in bytes, of cgroups v2 and v1; Linux only
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)

LIBRARIES = 2 * 10**9
"""Bytes of address space that torch and the other libraries need. With less, some of them crash."""

# Messages of PyTorch, NumPy, Arrow, C++ and the dynamic linker, if not in a MemoryError.
_SHORTAGE = re.compile(
    r"DefaultCPUAllocator|out of memory|you tried to allocate|bad_alloc|Cannot allocate memory"
    r"|failed to map segment|larger than the maximum possible size|[Ss]torage size calculation"
    r"|Maximum allowed dimension|multiplication overflow|can't start new thread"
)
_ASKED = re.compile(r"(?:allocate|of size) ([\d.]+) ?([kMGTPE]?)(i?)(?:B\b|bytes|failed)")


def available() -> int:
    """Returns the number of bytes that this process may still allocate.

    This is the free memory of the machine or of its container, whichever is less, divided by the
    number of ranks on this machine, but at most what is left of the limit of ``ulimit -v``.
    """
    room = [psutil.virtual_memory().available]
    for paths in CGROUPS:
        limit, usage = (_number(path) for path in paths)
        if limit is not None and usage is not None:
            room.append(limit - usage)
    free = min(room) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    limit = address_space()
    if limit is not None:
        free = min(free, limit - psutil.Process().memory_info().vms)
    return max(0, free)


def address_space() -> int | None:
    """Returns the limit of this process's address space in bytes (``ulimit -v``), if any."""
    if resource is None:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def require_address_space() -> None:
    """Raises an error if the limit of the address space is too low to load the libraries."""
    limit = address_space()
    if limit is not None and limit < LIBRARIES:
        raise MemoryNeeded(
            f"dgt needs {size(LIBRARIES)} of address space to start, but this process is limited "
            f"to {size(limit)}; raise the limit with ulimit -v"
        )


def require(needed: float, what: str, free: int | None = None) -> None:
    """Raises an error if there is not enough memory, before any of it is allocated.

    Args:
        needed: Number of bytes.
        what: What needs them, as the subject of the message.
        free: Bytes that are available (default: :func:`available`).
    """
    free = available() if free is None else free
    if needed > free:
        raise MemoryNeeded(f"{what} needs {size(needed)} of memory, but {_free(free)}")


def out_of_memory(error: BaseException) -> str | None:
    """Returns a message with the memory that was asked for and that is available.

    Args:
        error: An exception; None is returned unless memory has run out.
    """
    text = str(error)
    by_kind = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    native = isinstance(error, RuntimeError | ValueError | ImportError | OSError)
    if not by_kind and not (native and _SHORTAGE.search(text)):
        return None
    asked = _ASKED.search(text)
    if asked is None:
        return f"out of memory: {_free(available())}"
    number, prefix, binary = asked.groups()
    needed = float(number) * (1024 if binary else 1000) ** " kMGTPE".index(prefix or " ")
    return f"out of memory: could not allocate {size(needed)}; {_free(available())}"


def size(count: float) -> str:
    """Formats a number of bytes, such as ``1.5 GB``."""
    units = ["bytes", "kB", "MB", "GB", "TB", "PB", "EB"]
    while count >= 999.95 and len(units) > 1:
        count /= 1000
        units.pop(0)
    return f"{count:,.0f} bytes" if units[0] == "bytes" else f"{count:,.1f} {units[0]}"


def _free(free: int) -> str:
    return f"this machine has {size(free)} available"


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
