"""From a graph and the settings to the tensors that a model takes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt import blocks, structures
from dgt.baselines.deformable_gcn import SMOOTHINGS
from dgt.baselines.graphormer import MAX_DISTANCE
from dgt.config import Config, EncodingConfig
from dgt.encodings import choose_anchors, katz, katz_rows, laplacian, node2vec
from dgt.errors import InputError
from dgt.files import cache_folder
from dgt.graph import adjacency, features, scaled_rows, to_torch
from dgt.models import inputs
from dgt.sequences import node_sequences
from dgt.sequences.nodesort import mapped_sequences, sequence_rows

# From this many features on, sparse ones make the first layer faster.
SPARSE_WIDTH = 64
# Above this share of non-zero values, dense columns make the first layer faster.
DENSE_SHARE = 0.1


def prepare(
    data: Data, config: Config, anchors: Tensor | None = None, progress: bool = False
) -> dict[str, Tensor | None]:
    """What the model's ``forward`` takes, by argument name.

    Args:
        data: the graph.
        config: the settings.
        anchors: the nodes that get a Katz column, -1 for one that is not in this graph; by default
            those that :func:`dgt.encodings.choose_anchors` picks.
        progress: show a progress bar where this takes more than a moment.

    Returns:
        For DGT ``x``, float32 [N, F], sparse CSR where few features are not zero; ``sequences``,
        int32 [T, N, L]; ``encoding``, float32 [N, N'], sparse CSR where it is sparse, or None if
        switched off. ``INPUTS`` has those of all models. In double precision float64 instead.
    """
    made: dict[str, Tensor | None] = {}
    for name in inputs(config):
        if name == "sequences":
            made[name] = _sequences(data, config, progress)
        elif name == "encoding":
            made[name] = _encoding(data, config, anchors)
        else:
            made[name] = INPUTS[name](data, config)
    if config.model.precision == "double":
        made = {name: _double(value) for name, value in made.items()}
    return made


def _double(value: Tensor | None) -> Tensor | None:
    return value.double() if value is not None and value.is_floating_point() else value


def takes_anchors(config: Config) -> bool:
    """Whether the model has Katz columns, which belong to single nodes."""
    return "encoding" in inputs(config) and config.encoding.encoding == "katz"


def takes_vectors(config: Config) -> bool:
    """Whether the model has Node2Vec vectors, which belong to a single graph."""
    return "encoding" in inputs(config) and config.encoding.encoding == "node2vec"


def _edges(make: Callable[..., Tensor], **options: Any) -> Callable[[Data, Config], Tensor]:
    return lambda data, config: make(data.edge_index, data.num_nodes, **options)


def _features(data: Data, config: Config) -> Tensor:
    return _compact(scaled_rows(features(data), config.model.feature_scaling))


def _smoothed(data: Data, config: Config) -> Tensor:
    x = scaled_rows(features(data), config.model.feature_scaling)
    return _compact(structures.smoothed(x, data.edge_index, config.model.layers))


def _smoothed_neighbors(data: Data, config: Config) -> Tensor:
    x = scaled_rows(features(data), config.model.feature_scaling)
    return structures.smoothed_neighbors(x, data.edge_index, SMOOTHINGS, config.model.neighbors)


def _laplacian(data: Data, config: Config) -> Tensor:
    return laplacian(data.edge_index, data.num_nodes, config.encoding.laplacian_columns)


def _degrees(data: Data, config: Config) -> Tensor:
    return torch.from_numpy(np.diff(adjacency(data.edge_index, data.num_nodes).indptr)).long()


INPUTS: dict[str, Callable[[Data, Config], Tensor]] = {
    "x": _features,
    "smoothed": _smoothed,
    "normalized": _edges(structures.normalized),
    "one_hop": _edges(structures.normalized, loops=False),
    "two_hop": _edges(structures.two_hop),
    "mean": _edges(structures.mean),
    "joined": _edges(structures.joined),
    "distances": _edges(structures.shortest_paths, limit=MAX_DISTANCE),
    "degrees": _degrees,
    "latent_relations": _edges(structures.latent_relations),
    "smoothed_neighbors": _smoothed_neighbors,
    "laplacian": _laplacian,
}


def _compact(x: np.ndarray | scipy.sparse.csr_array) -> Tensor:
    """A float32 tensor; sparse CSR where that is faster."""
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x).float()
    wide = x.shape[1] >= SPARSE_WIDTH and x.nnz <= DENSE_SHARE * x.shape[0] * x.shape[1]
    return to_torch(x) if wide else torch.from_numpy(x.toarray()).float()


def _sequences(data: Data, config: Config, progress: bool) -> Tensor:
    return node_sequences(
        data,
        config.criteria,
        length=config.sequences.length,
        ppr_alpha=config.sequences.ppr_alpha,
        ppr_tolerance=config.sequences.ppr_tolerance,
        spacing=config.sequences.spacing,
        progress=progress,
        cache=True,
    )


def precompute(
    data: Data,
    config: Config,
    folder: Path | None = None,
    shard: tuple[int, int] = (0, 1),
    progress: bool = False,
) -> dict[str, Any]:
    """Makes the costly part of what :func:`prepare` returns, sequences and Katz columns, or a
    shard of it, and keeps it on disk, where :func:`prepare` finds it.

    What is there already is not made again. The files are the same for any number of shards.

    Args:
        data: the graph.
        config: the settings.
        folder: where it is kept (default: the cache).
        shard: which, from 0 on, of how many shards.
        progress: show a progress bar.

    Returns:
        ``folder``; ``blocks``, the number of them in all; ``made``, by this call; ``missing``,
        those that other shards have yet to make.
    """
    if "sequences" not in inputs(config):
        raise InputError(
            f"model {config.model.model!r} takes no sequences: there is nothing to prepare"
        )
    folder = folder or cache_folder()
    settings = config.sequences
    sequences = sequence_rows(
        data,
        config.criteria,
        settings.length,
        settings.ppr_alpha,
        settings.ppr_tolerance,
        settings.spacing,
        folder,
    )
    rows = list(sequences)
    if config.encoding.encoding == "katz":
        rows.append(katz_rows(**_katz_settings(data, config)))
    made = 0
    for one in rows:
        made += len(one.missing(folder, shard))
        for _ in blocks.through(one, folder, shard, progress, must_write=True):
            pass
    shape = (len(sequences), data.num_nodes, settings.length)
    if not any(one.missing(folder) for one in sequences):
        mapped_sequences(sequences, shape, folder)
    return {
        "folder": str(folder),
        "blocks": sum(len(one.blocks()) for one in rows),
        "made": made,
        "missing": sum(len(one.missing(folder)) for one in rows),
    }


def _encoding(data: Data, config: Config, anchors: Tensor | None) -> Tensor | None:
    if config.encoding.encoding == "none":
        return None
    if config.encoding.encoding == "laplacian":
        return _laplacian(data, config)
    if config.encoding.encoding == "node2vec":
        return _node2vec(data, config.encoding)
    columns = katz(**_katz_settings(data, config, anchors), cache=True)
    dense = columns.values().numel() > DENSE_SHARE * columns.numel()
    return columns.to_dense() if dense else columns


def _katz_settings(data: Data, config: Config, anchors: Tensor | None = None) -> dict[str, Any]:
    settings = config.encoding
    if anchors is None:
        anchors = choose_anchors(data.edge_index, data.num_nodes, settings.anchors)
    return {
        "edge_index": data.edge_index,
        "num_nodes": data.num_nodes,
        "order": settings.katz_order,
        "beta": settings.katz_beta,
        "scaling": settings.katz_scaling,
        "anchors": anchors,
    }


def _node2vec(data: Data, settings: EncodingConfig) -> Tensor:
    """From the cache, where they are already: training the vectors takes some seconds."""
    channels, p, q = settings.node2vec_channels, settings.node2vec_p, settings.node2vec_q
    shape = (data.num_nodes, channels)
    name = blocks.fingerprint(("node2vec", *shape, p, q), data.edge_index.cpu().numpy())

    def make() -> np.ndarray:
        return node2vec(data.edge_index, data.num_nodes, channels=channels, p=p, q=q).numpy()

    path = cache_folder() / "encodings" / f"{name}.npy"
    kept = blocks.mapped(path, shape, np.float32, lambda: [make()])
    return torch.from_numpy(make() if kept is None else kept)
