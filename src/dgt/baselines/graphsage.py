"""GraphSAGE."""

from torch import Tensor
from torch_geometric.nn import SAGEConv

from dgt.baselines.record import GNN, GNN_SETTINGS, LAYERS
from dgt.baselines.stack import Stack
from dgt.nn.record import Model, builder
from dgt.ops.sparse import SparseLinear, matmul


class SAGELayer(SAGEConv):
    """PyG's layer with dropout of its input, which may be sparse. The linear layers are therefore
    applied before the mean instead of after it, which gives the same result."""

    def __init__(self, in_channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__(in_channels, out_channels)
        self.lin_l = SparseLinear(in_channels, out_channels, dropout=dropout, bias=False)
        self.lin_r = SparseLinear(in_channels, out_channels, dropout=dropout)

    def forward(self, x: Tensor, mean: Tensor) -> Tensor:
        return matmul(mean, self.lin_l(x)) + self.lin_r(x)


class GraphSAGE(Stack):
    r"""GraphSAGE from `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_, with the mean of all neighbors:

    .. math::
        \mathbf{h}^{(l)}_i = \mathrm{ReLU}\Big(\mathbf{W}^{(l)}_1 \mathbf{h}^{(l-1)}_i +
        \mathbf{W}^{(l)}_2 \cdot \mathrm{mean}_{j \in N(i)} \mathbf{h}^{(l-1)}_j\Big)

    The last layer has no ReLU. For the arguments, see :class:`~dgt.baselines.stack.Stack`.
    """

    Layer = SAGELayer

    def forward(self, x: Tensor, mean: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            mean: Adjacency matrix with rows that sum to 1, sparse (CSR). Shape: ``(N, N)``.
            nodes: Nodes to return logits for (default: all).
        """
        return self.through(x, mean, nodes=nodes)


MODEL = Model(
    build=builder(GraphSAGE, *GNN_SETTINGS),
    inputs=("x", "mean"),
    grid=LAYERS,
    defaults=GNN,
)
