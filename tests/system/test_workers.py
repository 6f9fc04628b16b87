"""Worker processes: results, errors and termination."""

import os
import subprocess
import sys
import time

import pytest

from dgt.errors import InputError
from dgt.system.workers import cores, processes, share


def ended(process: int) -> bool:
    """Returns whether a process ends within 20 seconds."""
    for _ in range(200):
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def threads_or_mistake(task: int) -> int:
    import torch

    if task == 3:
        raise InputError("three")
    return torch.get_num_threads()


def test_tasks_come_with_their_results_and_errors():
    assert dict(share(threads_or_mistake, [1, 2], workers=1)) == {1: 1, 2: 1}
    with pytest.raises(InputError, match="three"):
        list(share(threads_or_mistake, [3], workers=1))


def test_running_tasks_are_killed_when_the_pool_is_closed():
    with processes(1) as pool:
        process = pool.submit(os.getpid).result()
        pool.submit(time.sleep, 600)
    assert ended(process)


def test_workers_end_when_their_parent_is_killed():
    code = (
        "import os, time; from dgt.system.workers import processes\n"
        "with processes(1) as pool:\n"
        "    print(pool.submit(os.getpid).result(), flush=True)\n"
        "    pool.submit(time.sleep, 600).result()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        worker = int(process.stdout.readline())
        process.kill()
    assert ended(worker)


def test_cores_without_an_affinity(monkeypatch: pytest.MonkeyPatch):
    """As on macOS."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    assert cores() == 6
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1
