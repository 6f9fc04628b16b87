"""Computes the input tensors of a model from a graph and the settings."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.baselines import structures
from dgt.baselines.deformable_gcn import SMOOTHINGS
from dgt.baselines.graphormer import MAX_DISTANCE
from dgt.config import CRITERIA, Config
from dgt.data.edge_tables import edge_weights
from dgt.data.matrices import adjacency, features, scaled_rows, to_torch
from dgt.encodings import laplacian, make
from dgt.errors import InputError, nearest
from dgt.sequences.make import make_scored_sequences, make_sequences
from dgt.storage import segments
from dgt.system.progress import progress_bar, showing

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
    with showing(progress):
        for name in config.record.inputs:
            value = INPUTS[name](request)
            made[name] = value if dtype is None else _cast(value, dtype)
    made.encoding_widths = request.encoding_widths
    return made


def _cast(value: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return value.to(dtype) if value is not None and value.is_floating_point() else value


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
    with progress_bar("Finding the nearest nodes", total) as advance:
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
