"""The models that the paper compares DGT with.

Each file holds one model and, at its end, the record that ``dgt.models.MODELS`` lists by name.
Every model returns the logits of ``nodes`` from ``model(**inputs, nodes=nodes)``. The inputs that
only baselines take are computed in :mod:`dgt.baselines.structures`. DGT itself lives in
:mod:`dgt.nn`, and the operators that the models share in :mod:`dgt.ops`.
"""

from dgt.baselines.deformable_gcn import DeformableGCN
from dgt.baselines.gat import GAT
from dgt.baselines.gatv2 import GATv2
from dgt.baselines.gcn import GCN
from dgt.baselines.geom_gcn import GeomGCN
from dgt.baselines.graphormer import Graphormer
from dgt.baselines.graphsage import GraphSAGE
from dgt.baselines.gt import GTFull, GTSparse
from dgt.baselines.h2gcn import H2GCN
from dgt.baselines.jknet import JKNet
from dgt.baselines.mixhop import MixHop
from dgt.baselines.mlp import MLP
from dgt.baselines.sgc import SGC
from dgt.baselines.transformer import Transformer

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
