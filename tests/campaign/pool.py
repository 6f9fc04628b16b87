"""Worker processes: each runs many cases, and is replaced after a crash or a hang."""

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.campaign.case import Case, Verdict

ROOT = Path(__file__).parents[2]
START_SECONDS = 600.0  # to compile the operators

Job = tuple[str, Case]
"""A class and one of its cases."""


class Worker:
    """One worker process."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="campaign-"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.campaign.worker", str(self.folder)],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        if self._reply(START_SECONDS) != "ready\n":
            raise RuntimeError(f"the worker did not start: {self.output()}")

    def run(self, klass: str, case: Case, keep: Path | None = None) -> Verdict:
        """Runs a case; a crash or a hang is its verdict."""
        request = json.dumps([klass, case.name, keep and str(keep)])
        assert self._process.stdin is not None
        self._process.stdin.write(request + "\n")
        self._process.stdin.flush()
        reply = self._reply(case.seconds)
        if reply:
            return Verdict(**json.loads(reply))
        code = self._process.wait()
        wrong = "hang" if reply is None else "abort"
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        detail = f"over {case.seconds:g} s" if wrong == "hang" else f"{how}: {self.output()[-800:]}"
        control = case.expect == "accepted"
        return Verdict(klass, case.name, control, wrong, detail, case.repeat)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def output(self) -> str:
        """Returns what the process last wrote to stderr."""
        path = self.folder / "stderr"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def close(self) -> None:
        self._kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _reply(self, seconds: float) -> str | None:
        """Returns a line; "" if the process has ended, None if it was killed for its time."""
        assert self._process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            self._kill()

        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        return None if late.is_set() and not line else line

    def _kill(self) -> None:
        """Kills the process and those that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def run_all(
    jobs: Sequence[Job],
    environment: dict[str, str],
    workers: int,
    show: Callable[[Verdict], None] = lambda verdict: None,
) -> list[Verdict]:
    """Runs cases in several workers.

    Args:
        jobs: The cases, started in this order.
        environment: Variables for the workers.
        workers: Number of processes.
        show: Called with each verdict.
    """
    waiting: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    verdicts: list[Verdict] = []

    def work() -> None:
        worker: Worker | None = None
        for klass, case in _taken(waiting):
            if worker is None or not worker.is_alive():
                if worker is not None:
                    worker.close()
                worker = Worker(environment)
            verdict = worker.run(klass, case)
            verdicts.append(verdict)
            show(verdict)
        if worker is not None:
            worker.close()

    threads = [threading.Thread(target=work) for _ in range(max(1, min(workers, len(jobs))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return verdicts


def _taken(waiting: "queue.SimpleQueue[Job]") -> Iterator[Job]:
    while True:
        try:
            yield waiting.get_nowait()
        except queue.Empty:
            return
