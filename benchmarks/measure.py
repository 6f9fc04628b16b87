"""Time and memory of a piece of work, each measured in a process of its own."""

import math
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch

from dgt.workers import end_with_parent


def in_own_process(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """The result of ``work(*arguments)`` in a new process, whose memory starts empty."""
    # As in the command line: threads that wait for one another sleep, instead of taking the core.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # Unlike a Pool, an executor notices when its process is killed.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, initializer=end_with_parent) as executor:
        return executor.submit(work, *arguments).result()


def measure(
    step: Callable[[], Any], rounds: int, threads: int, most_seconds: float = math.inf
) -> dict[str, Any]:
    """Median and least seconds of ``step`` after one round to warm up, and the most memory that it
    took: beyond what was there before, and in all.

    Args:
        step: what is measured.
        rounds: times that it is measured.
        threads: number of threads.
        most_seconds: after so many, no further round is begun.

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
    """A line of Linux's account of this process, in bytes."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def reset_peak() -> None:
    """From now on, ``VmHWM`` is the most memory held since this call."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
