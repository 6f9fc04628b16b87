"""The machine that dgt runs on: devices, memory, threads, processes, user modules, the terminal.

Nothing in here knows about graphs or models. Operators live in :mod:`dgt.ops`, and ranks that train
one model together in :mod:`dgt.training.distributed`.
"""

__all__ = ["devices", "machine", "plugins", "progress", "threads", "workers"]
