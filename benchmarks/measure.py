"""Time and memory of a piece of work, each measured in a process of its own."""

import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch


def in_own_process(work: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """The result of ``work(*arguments)`` in a new process, whose memory starts empty."""
    # As in the command line: threads that wait for one another sleep, instead of taking the core.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(work, arguments)


def measure(step: Callable[[], Any], rounds: int, threads: int) -> dict[str, Any]:
    """Median and least seconds of ``step`` after one round to warm up, and the most memory that it
    took beyond what was there before.

    Returns:
        ``seconds``, ``least_seconds`` and ``extra_bytes``.
    """
    torch.set_num_threads(threads)
    step()
    before = _memory("VmRSS")
    _reset_peak()
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    return {
        "seconds": statistics.median(seconds),
        "least_seconds": min(seconds),
        "extra_bytes": max(0, _memory("VmHWM") - before),
        "peak_bytes": _memory("VmHWM"),
    }


def _memory(field: str) -> int:
    """A line of Linux's account of this process, in bytes."""
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    raise OSError(f"/proc/self/status has no {field}")


def _reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
