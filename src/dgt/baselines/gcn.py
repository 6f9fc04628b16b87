"""Graph Convolutional Network."""

from torch import Tensor
from torch_geometric.nn import GCNConv

from dgt.baselines.record import GNN, GNN_SETTINGS, LAYERS
from dgt.baselines.stack import Stack
from dgt.nn.record import Model, builder
from dgt.ops.sparse import SparseLinear, matmul


class GCNLayer(GCNConv):
    """PyG's layer with dropout of its input, which may be sparse. It takes an adjacency matrix that
    is normalized already."""

    def __init__(self, in_channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__(in_channels, out_channels, normalize=False)
        self.lin = SparseLinear(in_channels, out_channels, dropout=dropout, bias=False)

    def message_and_aggregate(self, adj_t: Tensor, x: Tensor) -> Tensor:
        return matmul(adj_t, x)


class GCN(Stack):
    r"""GCN from `"Semi-Supervised Classification with Graph Convolutional Networks"
    <https://arxiv.org/abs/1609.02907>`_:

    .. math::
        \mathbf{H}^{(l)} = \mathrm{ReLU}(\mathbf{S} \mathbf{H}^{(l-1)} \mathbf{W}^{(l)}), \qquad
        \mathbf{S} = \mathbf{D}^{-1/2} (\mathbf{A} + \mathbf{I}) \mathbf{D}^{-1/2}

    The last layer has no ReLU. For the arguments, see :class:`~dgt.baselines.stack.Stack`.
    """

    Layer = GCNLayer

    def forward(self, x: Tensor, normalized: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            normalized: The matrix S, sparse (CSR). Shape: ``(N, N)``.
            nodes: Nodes to return logits for (default: all).
        """
        return self.through(x, normalized, nodes=nodes)


MODEL = Model(
    build=builder(GCN, *GNN_SETTINGS),
    inputs=("x", "normalized"),
    grid=LAYERS,
    defaults=GNN,
)
