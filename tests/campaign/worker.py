"""A process that runs cases: one request per line on stdin, one verdict per line on stdout."""

import dataclasses
import json
import logging
import os
import resource
import sys
import tempfile
from pathlib import Path

MEMORY = 10 * 2**30  # so that a case cannot exhaust the machine
FILE = 2**30


def main() -> None:
    folder = Path(sys.argv[1])
    replies = os.fdopen(os.dup(1), "w", buffering=1)
    requests = os.fdopen(os.dup(0), "r")
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    tempfile.tempdir = str(folder / "tmp")
    os.environ["TMPDIR"] = tempfile.tempdir
    Path(tempfile.tempdir).mkdir(exist_ok=True)

    from tests.campaign import hostile
    from tests.campaign.judge import STREAMS, judge

    os.environ[hostile.CANARY] = str(folder / "canary")
    STREAMS.capture(folder)
    import torch

    from tests.campaign.classes import find
    from tests.campaign.material import warm_up

    torch.set_num_threads(1)
    logging.captureWarnings(False)
    assert hostile.works()
    warm_up()
    replies.write("ready\n")
    for line in requests:
        klass, name, keep = json.loads(line)
        verdict = judge(klass, find(klass, name), keep and Path(keep))
        replies.write(json.dumps(dataclasses.asdict(verdict)) + "\n")


if __name__ == "__main__":
    main()
