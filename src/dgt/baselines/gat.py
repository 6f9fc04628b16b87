"""Graph Attention Network."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import GATConv

from dgt.baselines.normed import normed
from dgt.baselines.record import GNN, GNN_SETTINGS, HEADS, LAYERS
from dgt.config import ModelConfig
from dgt.nn.record import Model, builder
from dgt.ops import edges
from dgt.ops.dropout import dropout as drop
from dgt.ops.linear import Linear
from dgt.ops.sparse import SparseLinear


class GATLayer(GATConv):
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
        self.lin = SparseLinear(
            in_channels, heads * out_channels, dropout=input_dropout, bias=False
        )

    def forward(self, x: Tensor, joined: Tensor) -> Tensor:
        crow, col = joined.crow_indices(), joined.col_indices()
        values = self.lin(x).view(-1, self.heads, self.out_channels)
        source = (values * self.att_src).sum(dim=-1, keepdim=True)  # (N, M, 1)
        target = (values * self.att_dst).sum(dim=-1, keepdim=True)
        one = source.new_ones(self.heads, 1)
        scores = edges.additive(crow, col, target, source, one, self.negative_slope)
        attention = drop(edges.softmax(crow, scores), self.dropout, self.training)
        out = edges.aggregate(crow, col, attention, values)  # (N, M, C)
        return (out.flatten(1) if self.concat else edges.total(out, 1) / self.heads) + self.bias


class GAT(nn.Module):
    r"""GAT from `"Graph Attention Networks" <https://arxiv.org/abs/1710.10903>`_:

    .. math::
        \mathbf{h}^{(l)}_i = \mathrm{ELU}\Big( \big\|_{m=1}^M \sum_{j \in N(i) \cup \{i\}}
        \alpha^m_{ij} \mathbf{W}_m \mathbf{h}^{(l-1)}_j \Big), \qquad
        \alpha^m_{ij} = \mathrm{softmax}_j \, \mathrm{LeakyReLU}\big(\mathbf{a}_m^\top
        [\mathbf{W}_m \mathbf{h}_i \,\|\, \mathbf{W}_m \mathbf{h}_j]\big)

    The last layer averages over the heads and has no ELU. With a norm or a skip
    (:class:`~dgt.baselines.normed.Normed`), all layers are hidden layers, followed by ELU, and a
    linear layer outputs the logits.

    Args:
        in_channels: Number of features.
        hidden_channels: Total number of channels of all heads.
        out_channels: Number of classes.
        layers: Number of layers.
        heads: Number of heads M.
        dropout: Dropout probability of hidden channels and of the attention weights.
        input_dropout: Dropout probability of the features.
        norm: ``"layer"``, ``"batch"`` or ``"none"``: norm of each layer's output.
        skip: Whether to add a linear function of each layer's input to its output.
    """

    Layer: type[nn.Module] = GATLayer

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        *,
        layers: int = ModelConfig.layers,
        heads: int = ModelConfig.heads,
        dropout: float = GNN["dropout"],
        input_dropout: float = GNN["input_dropout"],
        norm: str = GNN["norm"],
        skip: bool = ModelConfig.skip,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        head = norm != "none" or skip
        each = []
        for l in range(layers):
            hidden = head or l < layers - 1
            wide = hidden_channels if l else in_channels
            of_input = dropout if l else input_dropout
            layer = self.Layer(
                wide,
                hidden_channels // heads if hidden else out_channels,
                heads,
                concat=hidden,
                dropout=dropout,
                input_dropout=of_input,
            )
            each.append(
                normed(layer, wide, hidden_channels, norm=norm, skip=skip, dropout=of_input)
            )
        self.layers: Sequence[nn.Module] = nn.ModuleList(each)  # type: ignore[assignment]
        self.out = Linear(hidden_channels, out_channels) if head else None

    def forward(self, x: Tensor, joined: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            joined: Adjacency matrix with self-loops, sparse (CSR). Shape: ``(N, N)``.
            nodes: Nodes to return logits for (default: all).
        """
        for l, layer in enumerate(self.layers):
            x = layer(F.elu(x) if l else x, joined)
        x = x if nodes is None else x[nodes]
        return x if self.out is None else self.out(drop(F.elu(x), self.dropout, self.training))


MODEL = Model(
    build=builder(GAT, *GNN_SETTINGS, "heads"),
    inputs=("x", "joined"),
    grid=LAYERS | HEADS,
    defaults=GNN,
)
