"""Multilayer perceptron, which ignores the graph."""

from torch import Tensor

from dgt.baselines.record import GNN
from dgt.baselines.stack import Stack
from dgt.nn.record import Model, builder
from dgt.ops.sparse import SparseLinear


class MLP(Stack):
    r"""The multilayer perceptron

    .. math::
        \mathbf{h}^{(l)}_i = \mathrm{ReLU}(\mathbf{W}^{(l)} \mathbf{h}^{(l-1)}_i +
        \mathbf{b}^{(l)}), \qquad \mathbf{h}^{(0)}_i = \mathbf{x}_i

    The last layer has no ReLU. For the arguments, see :class:`~dgt.baselines.stack.Stack`.
    """

    Layer = SparseLinear

    def forward(self, x: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """
        Args:
            x: Features, dense or sparse (CSR). Shape: ``(N, F)``.
            nodes: Nodes to return logits for (default: all).
        """
        return self.through(x, nodes=nodes)


MODEL = Model(build=builder(MLP, "layers", "dropout", "norm"), inputs=("x",), defaults=GNN)
