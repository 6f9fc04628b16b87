"""Computes the input tensors of a model from a graph and the settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.baselines import structures
from dgt.baselines.deformable_gcn import SMOOTHINGS
from dgt.baselines.graphormer import MAX_DISTANCE
from dgt.config import CRITERIA, Config, CriterionChoice
from dgt.data.direction import DIRECTED, is_directed, require_direction
from dgt.data.edge_tables import edge_weights, table_names
from dgt.data.matrices import adjacency, features, scaled_rows, to_torch
from dgt.encodings import laplacian, make
from dgt.encodings.encoding import CarriesOver
from dgt.errors import InputError, nearest
from dgt.sequences.make import (
    make_scored_sequences,
    make_sequences,
    mapped_scored_sequences,
    mapped_sequences,
    sequence_rows,
)
from dgt.storage import segments
from dgt.storage.files import cache_folder
from dgt.system.progress import progress_bar

# Inputs with signs and axes that are arbitrary, and thus other ones on another graph.
ONE_GRAPH = {"laplacian", "latent_relations"}

DTYPES = {"double": torch.float64, "bfloat16": torch.bfloat16}
"""The dtype of a model's floating-point inputs, by the setting ``precision``, if not float32."""

# From this number of features on, the first layer is faster with sparse features.
SPARSE_WIDTH = 64
# Above this fraction of nonzero values, the first layer is faster with dense features.
DENSE_SHARE = 0.1


class Inputs(dict[str, Tensor | None]):
    """The arguments of a model's ``forward`` by name."""

    encoding_widths: tuple[int, ...] = ()
    """Number of columns of each positional encoding in ``encoding``, where they are side by
    side."""


def prepare(
    data: Data,
    config: Config,
    anchors: Tensor | None = None,
    progress: bool = False,
    known: Tensor | None = None,
) -> Inputs:
    """Computes the inputs of a model.

    Args:
        data: The graph.
        config: The settings.
        anchors: Anchors of an encoding with one column per anchor, with -1 for an anchor that is
            not in this graph (default: the encoding chooses them).
        progress: Show a progress bar.
        known: The labels that the model may read, see :func:`~dgt.data.labels.label_columns`.
            Shape: ``(N, label_channels)``.

    Returns:
        The arguments of the model's ``forward`` by name. For DGT these are ``x``, float32
        ``(N, F)``, in sparse (CSR) format if few features are nonzero; ``sequences``, int32
        ``(T, N, L)``; and ``encoding``, float32 ``(N, N')``, possibly sparse, or None without an
        encoding. ``precision`` may replace float32 by float64 or bfloat16. ``INPUTS`` lists the
        inputs of all models.
    """
    request = Request(data, config, anchors, progress, known)
    for name in config.record.inputs:
        if name not in INPUTS:
            wanted = nearest(name, INPUTS)
            raise InputError(f"model {config.model.model}: unknown input {name!r}; {wanted}")
    made = Inputs()
    dtype = DTYPES.get(config.model.precision)
    for name in config.record.inputs:
        value = INPUTS[name](request)
        made[name] = value if dtype is None else _cast(value, dtype)
    made.encoding_widths = request.encoding_widths
    return made


def _cast(value: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return value.to(dtype) if value is not None and value.is_floating_point() else value


def carries_over(config: Config) -> CarriesOver:
    """Returns what another graph must share so that a trained model can use its inputs, apart from
    known labels."""
    if not ONE_GRAPH.isdisjoint(config.record.inputs):
        return "edges"
    return make.carries_over(config.encoding) if "encoding" in config.record.inputs else "always"


def reads_direction(config: Config, data: Data) -> bool:
    """Returns whether the inputs of the model depend on the direction of a graph's edges. Raises an
    error if they need it and it is not known."""
    inputs, read = config.record.inputs, False
    if "sequences" in inputs:
        for choice in config.criteria:
            if DIRECTED in CRITERIA.record(choice).reads:
                require_direction(data, f"criterion {CRITERIA.name(choice)}")
                read = True
    if "encoding" in inputs:
        make.require_directed(data, config.encoding)
        read = read or make.reads_direction(data, config.encoding)
    return read


def reads_labels(config: Config) -> bool:
    """Returns whether the labels of training nodes are an input of the model."""
    return "labels" in config.record.inputs and config.model.labels != "none"


def with_default_criteria(
    config: Config, data: Data, criteria: Sequence[CriterionChoice] = ()
) -> Config:
    """Returns the settings with the default criteria for a graph, unless criteria are set: a model
    may have other criteria for directed edges, and with several edge tables, a model that takes
    several criteria sorts by each table.

    Args:
        config: The settings.
        data: The graph.
        criteria: Criteria to use in place of the model's defaults.
    """
    names, record = table_names(data), config.record
    several = "sequences" in record.inputs and not record.single_criterion
    if not several or config.sequences.criteria is not None:
        return config
    if not criteria and record.directed_criteria and is_directed(data):
        criteria = record.directed_criteria
    if criteria:
        config = config.replace(criteria=tuple(criteria))
    if not names:
        return config
    by_table: list[CriterionChoice] = []
    for choice in config.criteria:
        by_edges = "edge_index" in CRITERIA.record(choice).reads
        own = [f"{CRITERIA.name(choice)}:{name}" for name in names]
        by_table += own if by_edges else [choice]
    return config.replace(criteria=by_table)


@dataclass
class Request:
    """The arguments of :func:`prepare`, which every input is computed from, and what one input
    leaves for another."""

    data: Data
    config: Config
    anchors: Tensor | None = None
    progress: bool = False
    known: Tensor | None = None
    scored: tuple[Tensor, Tensor] | None = None
    """The sequences and their closeness, once they are computed."""
    encoding_widths: tuple[int, ...] = ()
    """See :attr:`Inputs.encoding_widths`, once the encoding is computed."""


Input = Callable[[Request], Tensor | None]


def _edges(make: Callable[..., Tensor], **options: Any) -> Input:
    return lambda given: make(given.data.edge_index, given.data.num_nodes, **options)


def _weighted(make: Callable[..., Tensor], **options: Any) -> Input:
    def made(given: Request) -> Tensor:
        weights = edge_weights(given.data)
        return _edges(make, weights=weights, **options)(given)  # type: ignore[return-value]

    return made


def _scaled_features(given: Request) -> np.ndarray | scipy.sparse.csr_array:
    return scaled_rows(features(given.data), given.config.model.feature_scaling)


def _features(given: Request) -> Tensor:
    return _compact(_scaled_features(given))


def _sequences(given: Request) -> Tensor:
    config = given.config
    if "closeness" in config.record.inputs:
        return _scored(given)[0]
    return make_sequences(given.data, config.criteria, config.sequences, given.progress, cache=True)


def _closeness(given: Request) -> Tensor:
    return _scored(given)[1]


def _scored(given: Request) -> tuple[Tensor, Tensor]:
    config = given.config
    if given.scored is None:
        chosen = (config.criteria, config.sequences, given.progress)
        given.scored = make_scored_sequences(given.data, *chosen, cache=True)
        if config.model.labels == "read":
            _require_own_first(config, given.scored[0])
    return given.scored


def _require_own_first(config: Config, sequences: Tensor) -> None:
    """Raises an error unless every node is at the start of its own sequences and nowhere else: that
    is where a model that reads labels leaves it out."""
    nodes = torch.arange(sequences.size(1), dtype=sequences.dtype).split(segments.ROWS)
    for choice, sequence in zip(config.criteria, sequences, strict=True):
        # In pieces, as the sequences may be in a file and larger than the memory.
        for part, own in zip(sequence.split(segments.ROWS), nodes, strict=True):
            if bool((part[:, 0] != own).any() | (part[:, 1:] == own[:, None]).any()):
                raise InputError(
                    f"criterion {CRITERIA.name(choice)}: a node is not at the start of its own "
                    "sequence, where its label would be left out; choose another criterion, or "
                    "--labels none"
                )


def _columns(given: Request) -> Tensor | None:
    made = make.make_columns(given.data, given.config.encoding, given.anchors)
    columns, given.encoding_widths = made
    return columns


def _smoothed(given: Request) -> Tensor:
    x, edges = _scaled_features(given), given.data.edge_index
    weights = edge_weights(given.data)
    return _compact(structures.smoothed(x, edges, given.config.model.layers, weights))


def _smoothed_neighbors(given: Request) -> Tensor:
    x, edges = _scaled_features(given), given.data.edge_index
    total = (SMOOTHINGS + 1) * x.shape[0]
    with progress_bar("Finding the nearest nodes", total, given.progress) as advance:
        return structures.smoothed_neighbors(
            x, edges, SMOOTHINGS, given.config.model.neighbors, advance
        )


def _laplacian(given: Request) -> Tensor:
    data, columns = given.data, given.config.encoding.laplacian_columns
    return laplacian(data.edge_index, data.num_nodes, columns)


def _degrees(given: Request) -> Tensor:
    matrix = adjacency(given.data.edge_index, given.data.num_nodes)
    return torch.from_numpy(np.diff(matrix.indptr)).long()


INPUTS: dict[str, Input] = {
    "x": _features,
    "sequences": _sequences,
    "closeness": _closeness,
    "labels": lambda given: given.known,
    "encoding": _columns,
    "smoothed": _smoothed,
    "normalized": _weighted(structures.normalized),
    "one_hop": _weighted(structures.normalized, loops=False),
    "two_hop": _edges(structures.two_hop),
    "mean": _weighted(structures.mean),
    "joined": _edges(structures.joined),
    "distances": _edges(structures.shortest_paths, limit=MAX_DISTANCE),
    "degrees": _degrees,
    "latent_relations": _edges(structures.latent_relations),
    "smoothed_neighbors": _smoothed_neighbors,
    "laplacian": _laplacian,
}
"""Functions that compute the inputs of the models, by name."""


def _compact(x: np.ndarray | scipy.sparse.csr_array) -> Tensor:
    """Converts features to a float32 tensor, in sparse (CSR) format if that is faster."""
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x).float()
    wide = x.shape[1] >= SPARSE_WIDTH and x.nnz <= DENSE_SHARE * x.shape[0] * x.shape[1]
    return to_torch(x) if wide else torch.from_numpy(x.toarray()).float()


def precompute(
    data: Data,
    config: Config,
    folder: Path | None = None,
    shard: tuple[int, int] = (0, 1),
    progress: bool = False,
) -> dict[str, Any]:
    """Computes the expensive inputs ahead of :func:`prepare` and writes them to the cache.

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
