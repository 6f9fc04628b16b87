"""Measures time and memory of a function, in its own process."""

import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
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
