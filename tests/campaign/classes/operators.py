"""Random calls of the operators with wrong shapes, types and indices, under bounds checking."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.campaign.case import Case, Outcome, Wrong

CALLS = 10_000
ROOT = Path(__file__).parents[3]


def cases() -> Iterator[Case]:
    from tests.ops.cases import CASES

    for name in sorted(CASES):
        repeat = f"NUMBA_BOUNDSCHECK=1 python -m tests.ops.wrong_calls {CALLS} {name}"
        yield Case(
            name, "accepted", lambda n=name: _fuzz(n), repeat=repeat, seconds=1800, free=True
        )


def _fuzz(name: str) -> Outcome:
    # Compiled code is kept apart from that without checks.
    checked = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": os.environ["DGT_CAMPAIGN"] + "-numba"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.ops.wrong_calls", str(CALLS), name],
        cwd=ROOT,
        env={**os.environ, **checked},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or f"{CALLS} calls" not in done.stdout:
        raise Wrong("crash", f"exit code {done.returncode}: {(done.stdout + done.stderr)[-1000:]}")
    return Outcome(refused=False, answer={"calls": CALLS})
