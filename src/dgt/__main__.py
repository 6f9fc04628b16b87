"""``python -m dgt``, the same as the command ``dgt``."""

import sys

from dgt.cli import main

sys.exit(main())
