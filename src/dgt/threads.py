"""Numba kernels on as many threads as PyTorch uses.

The kernels release the interpreter's lock and share their work by their first two arguments, the
number of the thread and of all threads. Plain threads compile much faster than numba's own parallel
loops, and do not mind being called from several places at once.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch


def run(kernel: Callable[..., Any], tasks: int, *arguments: Any) -> list[Any]:
    """``kernel(thread, threads, *arguments)`` on every thread; no more threads than tasks."""
    threads = count(tasks)
    if threads == 1:
        return [kernel(0, 1, *arguments)]
    jobs = [
        _pool(threads, os.getpid()).submit(kernel, thread, threads, *arguments)
        for thread in range(1, threads)
    ]
    return [kernel(0, threads, *arguments), *(job.result() for job in jobs)]


def count(tasks: int) -> int:
    return max(1, min(torch.get_num_threads(), tasks))


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """A pool of this process: a forked one would find its parent's threads gone."""
    return ThreadPoolExecutor(threads - 1, thread_name_prefix="dgt")
