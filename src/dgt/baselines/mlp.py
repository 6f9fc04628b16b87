"""A network that sees each node's features alone."""

from torch import Tensor

from dgt.baselines.stack import Stack
from dgt.nn.sparse import SparseLinear


class MLP(Stack):
    r"""The multilayer perceptron

    .. math::
        \mathbf{h}^{(l)}_i = \mathrm{ReLU}(\mathbf{W}^{(l)} \mathbf{h}^{(l-1)}_i +
        \mathbf{b}^{(l)}), \qquad \mathbf{h}^{(0)}_i = \mathbf{x}_i

    whose last layer has no ReLU.

    Takes the arguments of :class:`~dgt.baselines.stack.Stack`.
    """

    Layer = SparseLinear

    def forward(self, x: Tensor, *, nodes: Tensor | None = None) -> Tensor:
        """The logits of all nodes, or of ``nodes``; ``x`` is dense or sparse (CSR)."""
        return self.through(x, nodes=nodes)
