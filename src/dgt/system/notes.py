"""Notes: what the user should know, although nothing is wrong; and warnings, said once."""

import logging
from functools import cache

NOTE = (logging.INFO + logging.WARNING) // 2
"""Level of notes. The command line shows them; in Python, they are off by default."""


@cache
def note_once(text: str) -> None:
    """Logs a note, but not twice in a process."""
    logging.getLogger("dgt").log(NOTE, text)


@cache
def warn_once(text: str) -> None:
    """Logs a warning, but not twice in a process."""
    logging.getLogger("dgt").warning(text)
