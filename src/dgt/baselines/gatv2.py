"""Graph Attention Network with dynamic attention."""

from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv

from dgt.baselines.gat import GAT
from dgt.baselines.record import GNN, GNN_SETTINGS, HEADS, LAYERS
from dgt.nn.record import Model, builder
from dgt.ops import edges
from dgt.ops.dropout import dropout as drop
from dgt.ops.sparse import SparseLinear


class GATv2Layer(GATv2Conv):
    """PyG's layer with dropout of its input, which may be sparse. Attention over the edges uses the
    operators of :mod:`dgt.ops.edges`."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int,
        *,
        concat: bool = True,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
    ) -> None:
        super().__init__(in_channels, out_channels, heads, concat=concat, dropout=dropout)
        width = heads * out_channels
        self.lin_l = SparseLinear(in_channels, width, dropout=input_dropout)
        self.lin_r = SparseLinear(in_channels, width, dropout=input_dropout)

    def forward(self, x: Tensor, joined: Tensor) -> Tensor:
        crow, col = joined.crow_indices(), joined.col_indices()
        source = self.lin_l(x).view(-1, self.heads, self.out_channels)
        target = self.lin_r(x).view(-1, self.heads, self.out_channels)
        scores = edges.additive(crow, col, target, source, self.att[0], self.negative_slope)
        attention = drop(edges.softmax(crow, scores), self.dropout, self.training)
        out = edges.aggregate(crow, col, attention, source)  # (N, M, C)
        return (out.flatten(1) if self.concat else edges.total(out, 1) / self.heads) + self.bias


class GATv2(GAT):
    r"""GATv2 from `"How Attentive are Graph Attention Networks?"
    <https://arxiv.org/abs/2105.14491>`_: :class:`~dgt.baselines.gat.GAT` with the attention

    .. math::
        \alpha^m_{ij} = \mathrm{softmax}_j \, \mathbf{a}_m^\top \mathrm{LeakyReLU}\big(
        \mathbf{W}_m \mathbf{h}_i + \mathbf{W}'_m \mathbf{h}_j\big)

    It takes the same arguments.
    """

    Layer: type[nn.Module] = GATv2Layer


MODEL = Model(
    build=builder(GATv2, *GNN_SETTINGS, "heads"),
    inputs=("x", "joined"),
    grid=LAYERS | HEADS,
    defaults=GNN,
)
