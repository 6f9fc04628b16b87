"""From a graph and the settings to the tensors that a model takes."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import Config, EncodingConfig
from dgt.encodings import choose_anchors, katz, laplacian, node2vec
from dgt.graph import features, scaled_rows, to_torch
from dgt.sequences import node_sequences
from dgt.sequences.cache import cached, fingerprint

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
        progress=progress,
        cache=True,
    )
    return {
        "x": _features(data, config.model.feature_scaling),
        "sequences": sequences,
        "encoding": _encoding(data, config, anchors),
    }


def _features(data: Data, scaling: str) -> Tensor:
    x = scaled_rows(features(data), scaling)
    if isinstance(x, np.ndarray):
        return torch.from_numpy(x).float()
    return to_torch(x) if x.shape[1] >= SPARSE_WIDTH else torch.from_numpy(x.toarray()).float()


def _encoding(data: Data, config: Config, anchors: Tensor | None) -> Tensor | None:
    settings = config.encoding
    if settings.encoding == "none":
        return None
    if settings.encoding == "laplacian":
        return laplacian(data.edge_index, data.num_nodes, settings.laplacian_columns)
    if settings.encoding == "node2vec":
        return _node2vec(data, settings)
    if anchors is None:
        anchors = choose_anchors(data.edge_index, data.num_nodes, settings.anchors)
    columns = katz(
        data.edge_index,
        data.num_nodes,
        order=settings.katz_order,
        beta=settings.katz_beta,
        scaling=settings.katz_scaling,
        anchors=anchors,
    )
    dense = columns.values().numel() > DENSE_SHARE * columns.numel()
    return columns.to_dense() if dense else columns


def _node2vec(data: Data, settings: EncodingConfig) -> Tensor:
    """From the cache, where they are already: training the vectors takes some seconds."""
    channels, p, q = settings.node2vec_channels, settings.node2vec_p, settings.node2vec_q
    shape = (data.num_nodes, channels)
    name = fingerprint(("node2vec", *shape, p, q), data.edge_index.cpu().numpy())

    def make() -> np.ndarray:
        return node2vec(data.edge_index, data.num_nodes, channels=channels, p=p, q=q).numpy()

    return torch.from_numpy(cached(name, shape, make, "encodings", np.float32))
