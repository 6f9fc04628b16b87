"""GraphSAGE."""

from torch import Tensor
from torch_geometric.nn import SAGEConv

from dgt.baselines.stack import Stack
from dgt.nn.sparse import SparseLinear, matmul


class SAGELayer(SAGEConv):
    """PyG's layer with dropout of its input, which may be sparse: so the linear layers come before
    the mean and not after it, to the same result."""

    def __init__(self, in_channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__(in_channels, out_channels)
        self.lin_l = SparseLinear(in_channels, out_channels, dropout=dropout, bias=False)
        self.lin_r = SparseLinear(in_channels, out_channels, dropout=dropout)

    def forward(self, x: Tensor, mean: Tensor) -> Tensor:
        return matmul(mean, self.lin_l(x)) + self.lin_r(x)


class GraphSAGE(Stack):
    r"""GraphSAGE from `"Inductive Representation Learning on Large Graphs"
    <https://arxiv.org/abs/1706.02216>`_, with the mean of all neighbours:

    .. math::
        \mathbf{h}^{(l)}_i = \mathrm{ReLU}\Big(\mathbf{W}^{(l)}_1 \mathbf{h}^{(l-1)}_i +
        \mathbf{W}^{(l)}_2 \cdot \mathrm{mean}_{j \in N(i)} \mathbf{h}^{(l-1)}_j\Big)

    whose last layer has no ReLU.

    Takes the arguments of :class:`~dgt.baselines.stack.Stack`.
    """

    Layer = SAGELayer

    def forward(self, x: Tensor, mean: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            mean: The adjacency matrix, each row divided by its sum, sparse (CSR). Shape:
                ``(N, N)``.
            nodes: The nodes whose logits are wanted (default: all).
        """
        return self.through(x, mean, nodes=nodes)
