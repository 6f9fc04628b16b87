"""``python -m tests.campaign``: runs the campaign and prints what was right and wrong."""

import argparse
import collections
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.campaign import material
from tests.campaign.case import Verdict
from tests.campaign.classes import CLASSES, cases
from tests.campaign.pool import Job, Worker, run_all


def main(tokens: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description=__doc__)
    parser.add_argument("--class", dest="classes", action="append", choices=list(CLASSES))
    parser.add_argument("--case", help="run only this case, and show its outcome")
    parser.add_argument("--match", default="", help="run only cases with this in their name")
    parser.add_argument("--keep", type=Path, help="with --case: the folder to run it in")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    parser.add_argument("--material", type=Path, help="folder to keep the valid inputs in")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(tokens)
    with tempfile.TemporaryDirectory(prefix="material-") as folder:
        environment = begin(given.material or Path(folder))
        jobs = [
            (klass, case)
            for klass in given.classes or CLASSES
            for case in cases(klass).values()
            if given.match in case.name and given.case in (None, case.name)
        ]
        if given.list:
            for klass, case in jobs:
                print(f"{klass}: {case.name} ({case.expect}): {case.repeat}")
            return 0
        if given.case is not None and given.keep is not None:
            return _single(*jobs[0], environment, given.keep)
        started = time.monotonic()
        verdicts = run_all(jobs, environment, given.workers, _show)
        print(table(verdicts))
        print(f"{time.monotonic() - started:.0f} s")
        return 1 if any(v.wrong for v in verdicts) else 0


def begin(
    folder: Path, set_variable: Callable[[str, str], object] = os.environ.__setitem__
) -> dict[str, str]:
    """Makes the material, unless it is there; sets and returns the variables for workers."""
    folder = folder.resolve()
    environment = {
        material.FOLDER: str(folder / "material"),
        "DGT_CACHE": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
    }
    for name, value in environment.items():
        set_variable(name, value)
    if (folder / "material").exists():
        return environment
    made = subprocess.run(
        [sys.executable, "-m", "tests.campaign.material", environment[material.FOLDER]],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise RuntimeError(f"the material cannot be made: {made.stdout}{made.stderr}")
    return environment


def text(verdict: Verdict) -> str:
    """Describes a wrong case, with what to do to repeat it."""
    again = ["python", "-m", "tests.campaign", "--class", verdict.klass, "--case", verdict.name]
    details = [*verdict.detail.strip().splitlines(), verdict.repeat, shlex.join(again)]
    lines = [f"WRONG {verdict.klass}: {verdict.name}: {verdict.wrong}"]
    return "\n".join([*lines, *(f"    {line}" for line in details if line)])


def _show(verdict: Verdict) -> None:
    if verdict.wrong is not None:
        # In one piece, since several threads print.
        sys.stdout.write(text(verdict) + "\n")
        sys.stdout.flush()


def table(verdicts: list[Verdict]) -> str:
    """Returns what was tried, right and wrong, by class."""
    rows = [("class", "tried", "controls", "right", "wrong", "")]
    groups = collections.defaultdict(list)
    for verdict in verdicts:
        groups[verdict.klass].append(verdict)
    for klass, found in [*((k, groups[k]) for k in CLASSES if k in groups), ("all", verdicts)]:
        reasons = collections.Counter(v.wrong for v in found if v.wrong)
        notes = sum((collections.Counter(v.notes) for v in found), collections.Counter())
        wrong = sum(reasons.values())
        words = [f"{count} {name}" for name, count in [*notes.items(), *reasons.items()]]
        row = (len(found), sum(v.control for v in found), len(found) - wrong, wrong)
        rows.append((klass, *map(str, row), ", ".join(words)))
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    return "\n".join(
        "  ".join(
            [
                row[0].ljust(widths[0]),
                *(c.rjust(w) for c, w in zip(row[1:5], widths[1:], strict=True)),
                row[5],
            ]
        ).rstrip()
        for row in rows
    )


def _single(klass: str, case: "Job", environment: dict[str, str], keep: Path) -> int:
    worker = Worker(environment)
    verdict = worker.run(klass, case, keep.resolve())
    print(worker.output())
    _show(verdict)
    worker.close()
    return 1 if verdict.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
