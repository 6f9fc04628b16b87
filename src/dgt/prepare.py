"""From a graph and the settings to the tensors that a model takes."""

import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import Config
from dgt.encodings import choose_anchors, katz
from dgt.graph import to_torch
from dgt.sequences import node_sequences

# Below this share of non-zero features, and from this width on, a sparse first layer is faster.
SPARSE_DENSITY = 0.1
SPARSE_WIDTH = 64


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
        int32 [T, N, L]; ``encoding``, float32 sparse CSR [N, N'], or None if switched off.
    """
    sequences = node_sequences(
        data,
        config.criteria,
        length=config.sequences.length,
        ppr_alpha=config.sequences.ppr_alpha,
        ppr_tolerance=config.sequences.ppr_tolerance,
        progress=progress,
    )
    return {
        "x": features(data.x),
        "sequences": sequences,
        "encoding": _encoding(data, config, anchors),
    }


def features(x: Tensor) -> Tensor:
    """The features as float32, as a sparse CSR tensor where that makes the first layer faster."""
    if x.layout != torch.strided:
        x = x.to_dense()
    x = x.float()
    width = x.size(1)
    if width < SPARSE_WIDTH or torch.count_nonzero(x) >= SPARSE_DENSITY * x.numel():
        return x
    return to_torch(scipy.sparse.csr_array(x.numpy()))


def _encoding(data: Data, config: Config, anchors: Tensor | None) -> Tensor | None:
    settings = config.encoding
    if settings.encoding == "none":
        return None
    if anchors is None:
        anchors = choose_anchors(data.edge_index, data.num_nodes, settings.anchors)
    return katz(
        data.edge_index,
        data.num_nodes,
        order=settings.katz_order,
        beta=settings.katz_beta,
        scaling=settings.katz_scaling,
        anchors=anchors,
    )
