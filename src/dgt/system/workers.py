"""Worker processes with one thread each."""

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import TypeVar

from dgt.config.choices import dump_registered, load_registered
from dgt.system import plugins

Task = TypeVar("Task")
Result = TypeVar("Result")


def share(
    work: Callable[[Task], Result], tasks: Iterable[Task], workers: int | None = None
) -> Generator[tuple[Task, Result], None, None]:
    """Runs tasks in worker processes and yields each task with its result, in order of completion.

    Small graphs do not keep several cores busy: single-threaded runs in parallel finish sooner than
    multi-threaded runs in sequence. An error in a task is raised here and cancels all tasks that
    have not started.

    Args:
        work: Module-level function, so that other processes can import it.
        tasks: Its arguments, one per call; must be picklable.
        workers: Number of processes (default: one per core).
    """
    with processes(workers or cores()) as pool:
        futures = {pool.submit(work, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()


@contextmanager
def processes(count: int, begin: Callable[[], None] | None = None) -> Iterator[Executor]:
    """Opens a pool of single-threaded processes; on exit, tasks that are still running are killed.

    The processes get the choices registered in this one and import the same user modules, see
    :mod:`dgt.system.plugins`.

    Args:
        count: Number of processes.
        begin: Called first in each process; must be picklable.
    """
    known = dump_registered(), plugins.loaded(), begin
    pool = ProcessPoolExecutor(
        count, mp_context=get_context("spawn"), initializer=_start, initargs=known
    )
    try:
        yield pool
    except BrokenProcessPool:
        raise OSError("a worker process was killed, possibly because memory ran out") from None
    finally:
        running = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()


def cores() -> int:
    """Returns the number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _start(
    registered: list[bytes], modules: Sequence[str], begin: Callable[[], None] | None
) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process handles Ctrl-C
    end_with_parent()
    import torch

    torch.set_num_threads(1)
    for module in modules:
        plugins.load(module)
    load_registered(registered)
    if begin is not None:
        begin()


def end_with_parent() -> None:
    """Makes this process exit when its parent does, even if the parent was killed."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
