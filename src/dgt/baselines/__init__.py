"""The models that the paper compares DGT with.

Each file holds one model and, at its end, the record that ``dgt.models.MODELS`` lists by name.
Every model returns the logits of ``nodes`` from ``model(**inputs, nodes=nodes)``. The inputs that
only baselines take are computed in :mod:`dgt.baselines.structures`. DGT itself lives in
:mod:`dgt.nn`, and the operators that the models share in :mod:`dgt.ops`.

The models are imported on first use, because some of them need ``torch_geometric.nn``.
"""

from typing import TYPE_CHECKING

from dgt.system.deferred import lazy_names

if TYPE_CHECKING:
    from dgt.baselines.deformable_gcn import DeformableGCN as DeformableGCN
    from dgt.baselines.gat import GAT as GAT
    from dgt.baselines.gatv2 import GATv2 as GATv2
    from dgt.baselines.gcn import GCN as GCN
    from dgt.baselines.geom_gcn import GeomGCN as GeomGCN
    from dgt.baselines.graphormer import Graphormer as Graphormer
    from dgt.baselines.graphsage import GraphSAGE as GraphSAGE
    from dgt.baselines.gt import GTFull as GTFull
    from dgt.baselines.gt import GTSparse as GTSparse
    from dgt.baselines.h2gcn import H2GCN as H2GCN
    from dgt.baselines.jknet import JKNet as JKNet
    from dgt.baselines.mixhop import MixHop as MixHop
    from dgt.baselines.mlp import MLP as MLP
    from dgt.baselines.sgc import SGC as SGC
    from dgt.baselines.transformer import Transformer as Transformer

__all__ = [
    "GAT",
    "GCN",
    "H2GCN",
    "MLP",
    "SGC",
    "DeformableGCN",
    "GATv2",
    "GTFull",
    "GTSparse",
    "GeomGCN",
    "GraphSAGE",
    "Graphormer",
    "JKNet",
    "MixHop",
    "Transformer",
]

__getattr__ = lazy_names(
    __name__,
    {
        "DeformableGCN": "dgt.baselines.deformable_gcn",
        "GAT": "dgt.baselines.gat",
        "GATv2": "dgt.baselines.gatv2",
        "GCN": "dgt.baselines.gcn",
        "GTFull": "dgt.baselines.gt",
        "GTSparse": "dgt.baselines.gt",
        "GeomGCN": "dgt.baselines.geom_gcn",
        "GraphSAGE": "dgt.baselines.graphsage",
        "Graphormer": "dgt.baselines.graphormer",
        "H2GCN": "dgt.baselines.h2gcn",
        "JKNet": "dgt.baselines.jknet",
        "MLP": "dgt.baselines.mlp",
        "MixHop": "dgt.baselines.mixhop",
        "SGC": "dgt.baselines.sgc",
        "Transformer": "dgt.baselines.transformer",
    },
)
