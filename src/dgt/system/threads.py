"""Runs compiled loops on as many threads as PyTorch uses.

A loop must release the GIL and take the index of its thread and the number of threads as its first
two arguments. Loops for plain Python threads compile much faster than numba's parallel loops, and
can be called from several threads at once.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import torch


def run(function: Callable[..., Any], tasks: int, *arguments: Any) -> list[Any]:
    """Calls ``function(thread, threads, *arguments)`` on every thread.

    Args:
        function: Compiled function that releases the GIL.
        tasks: Number of tasks; no more threads than this are used.
        *arguments: Further arguments of the function.

    Returns:
        The result of each thread.
    """
    threads = count(tasks)
    if threads == 1:
        return [function(0, 1, *arguments)]
    jobs = [
        _pool(threads, os.getpid()).submit(function, thread, threads, *arguments)
        for thread in range(1, threads)
    ]
    return [function(0, threads, *arguments), *(job.result() for job in jobs)]


def count(tasks: int) -> int:
    """Returns the number of threads to use for a number of tasks."""
    return max(1, min(torch.get_num_threads(), tasks))


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Returns the pool of this process; a forked process does not inherit its parent's threads."""
    return ThreadPoolExecutor(threads - 1, thread_name_prefix="dgt")
