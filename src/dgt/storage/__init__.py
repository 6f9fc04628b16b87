"""Atomic writes, and the cache on disk.

``files`` writes files atomically, ``tensors`` writes safetensors files, ``segments`` caches large
arrays in segments, ``fingerprint`` computes their cache keys, and ``locks`` locks files. What the
files mean is defined elsewhere, for instance in :mod:`dgt.sequences` and :mod:`dgt.runs`.
"""

from dgt.storage.files import cache_folder, write_atomically, write_bytes, write_text
from dgt.storage.locks import lock

__all__ = ["cache_folder", "lock", "write_atomically", "write_bytes", "write_text"]
