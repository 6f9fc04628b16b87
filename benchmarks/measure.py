"""Measures time and memory of a function, in its own process, and keeps the results in a file."""

import datetime
import json
import math
import multiprocessing
import os
import platform
import resource
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch

from dgt.system.workers import end_with_parent


def in_own_process(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Returns ``work(*arguments)``, computed in a new process."""
    # As on the command line: waiting threads sleep instead of keeping a core busy.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Unlike a Pool, an executor notices when its process is killed.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=end_with_parent) as executor:
        return executor.submit(work, *arguments).result()


def measure(
    step: Callable[[], Any], rounds: int, threads: int, most_seconds: float = math.inf
) -> dict[str, Any]:
    """Measures the median and shortest time of ``step`` after a warm-up round, and its peak memory,
    both in total and beyond the memory in use before.

    Args:
        step: Function to measure.
        rounds: Number of measurements.
        threads: Number of threads.
        most_seconds: Time after which no further round is started.

    Returns:
        ``seconds``, ``least_seconds``, ``extra_bytes``, ``peak_bytes`` and ``rounds``.
    """
    torch.set_num_threads(threads)
    step()
    before = memory("VmRSS")
    reset_peak()
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
        if sum(seconds) >= most_seconds:
            break
    return {
        "rounds": len(seconds),
        "seconds": statistics.median(seconds),
        "least_seconds": min(seconds),
        "extra_bytes": max(0, memory("VmHWM") - before),
        "peak_bytes": memory("VmHWM"),
    }


def memory(field: str) -> int:
    """Returns a field of ``/proc/self/status`` in bytes."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def reset_peak() -> None:
    """Resets ``VmHWM``, the peak memory of this process."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def limit(threads: int, gigabytes: float) -> None:
    """Limits threads and memory, so that an allocation fails before the system starts to kill
    processes."""
    torch.set_num_threads(threads)
    most = int(gigabytes * 1e9)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def free_gigabytes() -> float:
    """Returns most of the memory that is free now."""
    with open("/proc/meminfo") as file:
        (free,) = (int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    return round(0.9 * free * 1024 / 1e9, 1)


def where() -> dict[str, str]:
    """Returns the machine, the date and the version of PyTorch."""
    with open("/proc/cpuinfo") as file:
        names = [line.split(":")[1].strip() for line in file if line.startswith("model name")]
    return {
        "machine": names[0] if names else platform.machine(),
        "date": datetime.date.today().isoformat(),
        "torch": torch.__version__,
    }


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Returns the measurements in a file with one JSON object per line."""
    if not path.is_file():
        return []
    # An incomplete line, left by a crash, is measured again.
    whole = path.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines()]


def append_line(path: Path, row: dict[str, Any]) -> None:
    """Appends a measurement to a file. What a crash has left of the last line is removed."""
    with open(path, "a+b") as file:
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write((json.dumps(row) + "\n").encode())
