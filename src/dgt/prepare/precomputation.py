"""Computes expensive inputs ahead of training, for the cache."""

from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from dgt.config import Config
from dgt.encodings import make
from dgt.errors import InputError
from dgt.sequences.make import mapped_scored_sequences, mapped_sequences, sequence_rows
from dgt.storage import segments
from dgt.storage.files import cache_folder


def precompute(
    data: Data,
    config: Config,
    folder: Path | None = None,
    shard: tuple[int, int] = (0, 1),
    progress: bool = False,
) -> dict[str, Any]:
    """Computes the expensive inputs ahead of :func:`~dgt.prepare.inputs.prepare` and writes them to
    the cache.

    These are the sequences and, if it is expensive, the encoding. Existing segments are not
    computed again. The files do not depend on the number of shards.

    Args:
        data: The graph.
        config: The settings.
        folder: Output folder (default: the cache).
        shard: Index of the shard to compute, starting at 0, and the number of shards.
        progress: Show a progress bar.

    Returns:
        ``folder``; ``segments``, the total number of segments; ``made``, the number of segments
        that this call computed; and ``missing``, the number that other shards have yet to compute.
    """
    if "sequences" not in config.record.inputs:
        raise InputError(
            f"model {config.model.model!r} takes no sequences: there is nothing to prepare"
        )
    folder = folder or cache_folder()
    scored = "closeness" in config.record.inputs
    every = sequence_rows(data, config.criteria, config.sequences, folder, scored=scored)
    sequences = [one for one in every if one.name]  # criteria without a name cannot be cached
    rows = sequences + make.encoding_rows(data, config.encoding)
    made = 0
    for one in rows:
        made += len(one.missing(folder, shard))
        for _ in segments.through(one, folder, shard, progress, must_write=True):
            pass
    shape = (len(every), data.num_nodes, config.sequences.length)
    complete = len(sequences) == len(every)
    if complete and not any(one.missing(folder) for one in sequences):
        (mapped_scored_sequences if scored else mapped_sequences)(sequences, shape, folder)
    return {
        "folder": str(folder),
        "segments": sum(len(one.segments()) for one in rows),
        "made": made,
        "missing": sum(len(one.missing(folder)) for one in rows),
    }
