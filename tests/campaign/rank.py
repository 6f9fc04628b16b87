"""A command in a process of torchrun, which kills itself if ``DGT_CAMPAIGN_KILL`` says so."""

import os
import sys

from dgt.cli import main
from tests.campaign.processes import checkpoints, kill_at

if __name__ == "__main__":
    checkpoints()
    wish = os.environ.get("DGT_CAMPAIGN_KILL")
    if wish:
        rank, event, number = map(int, wish.split())
        if os.environ["RANK"] == str(rank):
            kill_at(event, number)()
    sys.exit(main(sys.argv[1:]))
