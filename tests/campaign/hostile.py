"""Pickles that execute code when they are loaded: they create the file named by ``CANARY``."""

import os
import pickle
from pathlib import Path

CANARY = "DGT_CAMPAIGN_CANARY"


class Hostile:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return exec, (f"import os; open(os.environ[{CANARY!r}], 'w').close()",)


def works() -> bool:
    """Returns whether the canary is seen: loads a hostile pickle on purpose."""
    path = Path(os.environ[CANARY])
    pickle.loads(pickle.dumps(Hostile()))
    found = path.exists()
    path.unlink(missing_ok=True)
    return found
