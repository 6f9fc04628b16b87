"""The machine that dgt runs on: devices, memory, folders, threads, processes, signals, user
modules, the terminal.

Nothing in here knows about graphs or models. Operators live in :mod:`dgt.ops`, and ranks that train
one model together in :mod:`dgt.training.distributed`.
"""

__all__ = ["devices", "folders", "machine", "plugins", "progress", "signals", "threads", "workers"]
