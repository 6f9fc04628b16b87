"""Computes the sequences of all criteria or reads them from the cache."""

import logging
import math
import shutil
from collections.abc import Iterator, Sequence
from functools import cache as once
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import CRITERIA, CriterionChoice, SequenceConfig
from dgt.data.direction import DIRECTED, require_direction
from dgt.data.edge_tables import of_table
from dgt.errors import InputError
from dgt.sequences.criterion import Criterion, Graph, Sort
from dgt.sequences.custom import check_sort
from dgt.sequences.spacing import space_by_score
from dgt.storage import segments
from dgt.storage.files import cache_folder
from dgt.storage.fingerprint import fingerprint
from dgt.storage.segments import Advance, CachedRows
from dgt.system import machine
from dgt.system.plugins import call
from dgt.system.progress import progress_bar, showing

log = logging.getLogger("dgt")

FOLDER, SCORED, CLOSENESS = "sequences", "scored-sequences", "closeness"  # in the cache
INT = 4  # bytes per entry
# From this number of bytes on, sequences are memory-mapped.
MAPPED_BYTES = 2**26
# Copies of a segment in memory while it is computed and written.
COPIES = 4


def make_sequences(
    data: Data,
    criteria: Sequence[CriterionChoice],
    settings: SequenceConfig,
    progress: bool = False,
    cache: bool = False,
) -> Tensor:
    """Returns the sequences of a graph, as :func:`dgt.sequences.node_sequences` does.

    Args:
        data: The graph.
        criteria: Names or functions.
        settings: The other settings.
        progress: Show a progress bar.
        cache: Read the sequences from the cache, and write them to it.

    Returns:
        int32 ``(T, N, L)``.
    """
    shape = (len(criteria), data.num_nodes, settings.length)
    folder = cache_folder() if cache else None
    _require_room(shape, folder)
    rows = sequence_rows(data, criteria, settings, folder)
    if folder and all(one.name for one in rows):
        mapped = mapped_sequences(rows, shape, folder, progress)
        if mapped is not None:
            return torch.from_numpy(mapped)
    sequences = np.empty(shape, dtype=np.int32)
    for t, one in enumerate(rows):
        if folder and one.name:
            parts = segments.through(one, folder, progress=progress)
            sequences[t] = np.concatenate([part for (part,) in parts])
        else:
            one.begin(progress)
            with progress_bar(one.title, data.num_nodes, progress) as advance:
                (sequences[t],) = one.make(0, data.num_nodes, advance)
    return torch.from_numpy(sequences)


def make_scored_sequences(
    data: Data,
    criteria: Sequence[CriterionChoice],
    settings: SequenceConfig,
    progress: bool = False,
    cache: bool = False,
) -> tuple[Tensor, Tensor]:
    """Like :func:`make_sequences`, with the closeness of the nodes, see
    :mod:`dgt.sequences.closeness`.

    Returns:
        The sequences, int32 ``(T, N, L)``, and the closeness, float32 ``(T, N, L)``, 0 in the
        padding.
    """
    if settings.spacing != "rank":
        raise InputError(
            f"spacing: got {settings.spacing!r}, expected 'rank': attention that sees scores needs "
            "each node once"
        )
    shape = (len(criteria), data.num_nodes, settings.length)
    folder = cache_folder() if cache else None
    rows = sequence_rows(data, criteria, settings, folder, scored=True)
    if folder and all(one.name for one in rows):
        mapped = mapped_scored_sequences(rows, shape, folder, progress)
        if mapped is not None:
            return torch.from_numpy(mapped[0]), torch.from_numpy(mapped[1])
    sequences, closeness = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.float32)
    for t, one in enumerate(rows):
        if folder and one.name:
            parts = list(segments.through(one, folder, progress=progress))
        else:
            one.begin(progress)
            with progress_bar(one.title, data.num_nodes, progress) as advance:
                parts = [one.make(0, data.num_nodes, advance)]
        sequences[t] = np.concatenate([part[0] for part in parts])
        closeness[t] = np.concatenate([part[1] for part in parts])
    return torch.from_numpy(sequences), torch.from_numpy(closeness)


def sequence_rows(
    data: Data,
    criteria: Sequence[CriterionChoice],
    settings: SequenceConfig,
    folder: Path | None = None,
    graph: Graph | None = None,
    *,
    scored: bool = False,
) -> list[CachedRows]:
    """Describes how to compute the sequences of each criterion.

    Args:
        data: The graph.
        criteria: Names or functions.
        settings: The other settings.
        folder: Folder of the cache.
        graph: The graph in the form that criteria sort (default: made from ``data``).
        scored: Whether the rows also hold the closeness of the nodes.

    Returns:
        One entry per criterion. Its name is empty without a folder, or if the criterion cannot be
        cached.
    """
    _require_room((len(criteria), data.num_nodes, settings.length), folder, 1 + scored)
    graphs = {"": graph or Graph(data)}

    def rows(choice: CriterionChoice) -> CachedRows:
        record, title = CRITERIA.record(choice), CRITERIA.name(choice)
        base, table = CRITERIA.parts(title)
        if table not in graphs:
            graphs[table] = Graph(of_table(data, table))
        graph, name = graphs[table], ""
        if DIRECTED in record.reads:
            require_direction(graph.data, f"criterion {title}")
        # Registered code may change under the same name, which the cache could not notice.
        if folder is not None and record.cached and base in CRITERIA.built_in:
            kind, more = (SCORED, (settings.sharpness,)) if scored else (FOLDER, ())
            name = f"{kind}/{_fingerprint(base, record, graph, settings, *more)}"

        @once
        def sort() -> Sort:
            place = folder / name if folder and name else None
            if title in CRITERIA.built_in:
                return record.begin(graph, settings, place)
            what = f"criterion {title}"
            made = call(what, record.begin, graph, settings, place)
            return check_sort(what, made, data.num_nodes, settings.length)

        def begin(progress: bool) -> None:
            with showing(progress):
                sort()

        def make(start: int, stop: int, advance: Advance) -> list[np.ndarray]:
            sequences, scores = sort()(range(start, stop), advance)
            if scored:
                flat = np.zeros(sequences.shape, dtype=np.float32)
                close = flat if scores is None else record.closeness(scores, settings)
                return [sequences, np.where(sequences >= 0, close, 0).astype(np.float32)]
            if settings.spacing == "score":
                if scores is not None:
                    sequences = space_by_score(sequences, scores)
                elif start == 0:
                    log.warning("spacing score has no effect: criterion %s has no scores", title)
            return [sequences]

        return CachedRows(name, f"Sorting nodes by {title}", data.num_nodes, make, begin)

    return [rows(criterion) for criterion in criteria]


def _require_room(shape: tuple[int, int, int], folder: Path | None, arrays: int = 1) -> None:
    """Raises an error if arrays of shape ``(T, N, L)`` fit neither into memory nor the cache."""
    _, N, L = shape
    needed = arrays * INT * math.prod(shape)
    if folder is not None and arrays * MAPPED_BYTES <= needed <= _free_space(folder):
        needed = arrays * COPIES * INT * min(N, segments.ROWS) * L
    machine.require(needed, f"sorting {N:,} nodes into sequences of length {L:,}")


def _free_space(folder: Path) -> int:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _fingerprint(
    name: str, record: Criterion, graph: Graph, settings: SequenceConfig, *more: object
) -> str:
    """Hashes everything that the sequences of a criterion depend on."""
    facts = (name, settings.spacing, graph.num_nodes, settings.length, *record.settings(settings))
    facts += more
    facts += record.method(graph, settings)
    reads = (attribute for attribute in record.reads if graph.data.get(attribute) is not None)
    return fingerprint([graph.read(attribute) for attribute in reads], facts)


def mapped_sequences(
    rows: Sequence[CachedRows], shape: tuple[int, ...], folder: Path, progress: bool = False
) -> np.ndarray | None:
    """Memory-maps one file with the sequences of several criteria. Missing segments are computed.

    Returns:
        int32 ``(T, N, L)``; None if the sequences are small or the file cannot be written.
    """
    return _mapped(rows, shape, folder, progress, FOLDER, 0, np.int32)


def mapped_scored_sequences(
    rows: Sequence[CachedRows], shape: tuple[int, ...], folder: Path, progress: bool = False
) -> tuple[np.ndarray, np.ndarray] | None:
    """Does the same as :func:`mapped_sequences` for scored sequences, with one file for the
    sequences and one for their closeness.

    Returns:
        int32 and float32 ``(T, N, L)``, or None.
    """
    sequences = _mapped(rows, shape, folder, progress, SCORED, 0, np.int32)
    if sequences is None:
        return None
    closeness = _mapped(rows, shape, folder, progress, CLOSENESS, 1, np.float32)
    return None if closeness is None else (sequences, closeness)


def _mapped(
    rows: Sequence[CachedRows],
    shape: tuple[int, ...],
    folder: Path,
    progress: bool,
    kind: str,
    array: int,
    dtype: type[np.generic],
) -> np.ndarray | None:
    """Memory-maps the file of one of the arrays that the rows hold."""
    if INT * math.prod(shape) < MAPPED_BYTES:
        return None
    name = fingerprint([], tuple(one.name for one in rows))

    def parts() -> Iterator[np.ndarray]:
        for one in rows:
            for arrays in segments.through(one, folder, progress=progress):
                yield arrays[array]

    return segments.mapped(folder / kind / f"{name}.npy", shape, dtype, parts)
