"""Work shared among processes of one thread each."""

import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def share(
    work: Callable[[Task], Result], tasks: Iterable[Task], workers: int | None = None
) -> Generator[tuple[Task, Result], None, None]:
    """Yields each task with its result as it is done, in the order in which they finish.

    Small graphs do not keep two cores busy: runs side by side, each on one thread, finish sooner
    than one after the other on all. An error in a task is raised here; tasks that have not begun
    are then given up.

    Args:
        work: A function of a module, so that other processes can import it.
        tasks: What it is called with, one after the other; anything that pickles.
        workers: Number of processes (default: one for each core).
    """
    with processes(workers or cores()) as pool:
        futures = {pool.submit(work, task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """A pool of processes of one thread each; what still runs when it is left is given up."""
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn"), initializer=_start)
    try:
        yield pool
    except BrokenProcessPool:
        raise OSError("a worker process was killed; perhaps the memory was too small") from None
    finally:
        running = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in running:
            process.terminate()


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _start() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the process that waits for us
    end_with_parent()
    import torch

    torch.set_num_threads(1)


def end_with_parent() -> None:
    """From now on this process ends when the one that started it does, even if that was killed."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
