"""From a graph and the settings to the tensors that a model takes."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt import blocks
from dgt.config import Config
from dgt.encodings import choose_anchors, katz, katz_rows
from dgt.files import cache_folder
from dgt.graph import features, scaled_rows, to_torch
from dgt.sequences import node_sequences
from dgt.sequences.nodesort import mapped_sequences, sequence_rows

# From this many features on, sparse ones make the first layer faster.
SPARSE_WIDTH = 64
# Above this share of non-zero values, dense columns make the encoding's first layer faster.
DENSE_SHARE = 0.1


def prepare(
    data: Data, config: Config, anchors: Tensor | None = None, progress: bool = False
) -> dict[str, Tensor | None]:
    """What a model's ``forward`` takes, by argument name.

    Args:
        data: the graph.
        config: the settings.
        anchors: the nodes that get a Katz column, -1 for one that is not in this graph; by default
            those that :func:`dgt.encodings.choose_anchors` picks.
        progress: show a progress bar where this takes more than a moment.

    Returns:
        ``x``, float32 [N, F], sparse CSR where few features are not zero; ``sequences``,
        int32 [T, N, L]; ``encoding``, float32 [N, N'], sparse CSR where it is sparse, or None if
        switched off.
    """
    sequences = node_sequences(
        data,
        config.criteria,
        length=config.sequences.length,
        ppr_alpha=config.sequences.ppr_alpha,
        ppr_tolerance=config.sequences.ppr_tolerance,
        spacing=config.sequences.spacing,
        progress=progress,
        cache=True,
    )
    return {
        "x": _features(data, config.model.feature_scaling),
        "sequences": sequences,
        "encoding": _encoding(data, config, anchors),
    }


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
    if config.encoding.encoding != "none":
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


def _features(data: Data, scaling: str) -> Tensor:
    x = scaled_rows(features(data), scaling)
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x).float()
    return to_torch(x) if x.shape[1] >= SPARSE_WIDTH else torch.from_numpy(x.toarray()).float()


def _encoding(data: Data, config: Config, anchors: Tensor | None) -> Tensor | None:
    if config.encoding.encoding == "none":
        return None
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
