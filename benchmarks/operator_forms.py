"""The hand-written operators, each with its peer in PyTorch or PyG, as ``ops.py`` compares them."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import scatter
from torch_geometric.utils import softmax as pyg_softmax

from dgt.ops import edges
from dgt.ops.distance_attention import distance_attention
from dgt.ops.dropout import dropout, dropout_linear, dropout_rows
from dgt.ops.edges.reference import directional as plain_directional
from dgt.ops.linear import linear
from dgt.ops.memory import empty
from dgt.ops.norm import BatchNorm, LayerNorm
from dgt.ops.softmax import softmax
from dgt.ops.sparse import csr, matmul

FEATURES = 128
HEADS = 4


class Size(NamedTuple):
    nodes: int
    channels: int
    edges: int
    rounds: int


FULL, QUICK = Size(100_000, 64, 500_000, 9), Size(300, 16, 2000, 1)


class Forms(NamedTuple):
    """Two functions of the same tensors; the first tensor is split by rows for chunks."""

    ours: Callable[..., Tensor]
    theirs: Callable[..., Tensor]
    tensors: tuple[Tensor, ...]
    learned: tuple[int, ...] = (0,)
    """Indices of the tensors that get a gradient."""

    def step(self, form: str) -> list[Tensor]:
        """Returns the output and the gradients."""
        leaves = [self.tensors[place].requires_grad_() for place in self.learned]
        out = getattr(self, form)(*self.tensors)
        if not out.requires_grad:
            return [out]
        upstream = torch.linspace(-1, 1, out.size(-1), dtype=out.dtype).expand_as(out)
        return [out.detach(), *torch.autograd.grad(out, leaves, upstream)]


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


def rows(ours: Callable[..., Tensor], theirs: Callable[..., Tensor], size: Size) -> Forms:
    return Forms(ours, theirs, (random(size.nodes, size.channels),))


def graph(size: Size) -> tuple[Tensor, Tensor, Tensor]:
    """Returns crow, col, and the target of each edge."""
    generator = torch.Generator().manual_seed(0)
    row = torch.randint(size.nodes, (size.edges,), generator=generator).sort().values
    crow = F.pad(torch.bincount(row, minlength=size.nodes).cumsum(0), (1, 0))
    return crow, torch.randint(size.nodes, (size.edges,), generator=generator), row


def heads(size: Size) -> Tensor:
    return random(size.nodes, HEADS, size.channels // HEADS)


def with_plus(size: Size) -> Forms:
    x = random(size.nodes, size.channels)
    return Forms(
        lambda x, plus: dropout(x, 0.5, plus=plus),
        lambda x, plus: F.dropout(x, 0.5) + plus,
        (x, x.clone()),
        (0, 1),
    )


def dropped_linear(size: Size) -> Forms:
    inputs = random(size.nodes, FEATURES), random(FEATURES, size.channels), random(size.channels)
    return Forms(
        lambda x, w, b: dropout_linear(x, w, b, 0.5),
        lambda x, w, b: torch.addmm(b, F.dropout(x, 0.5), w),
        inputs,
        (1, 2),
    )


def products_of_rows(size: Size, plus: bool = False, classes: int = 0) -> Forms:
    C = classes or size.channels
    added = random(size.nodes, C) if plus else random(C)
    inputs = random(size.nodes, size.channels), random(size.channels, C), added
    return Forms(linear, lambda x, w, b: F.linear(x, w.t()) + b if plus else F.linear(x, w.t(), b),
                 inputs, (0, 1, 2))  # fmt: skip


def sparse_product(size: Size) -> Forms:
    crow, col, _ = graph(size)
    A = csr(crow, col % FEATURES, random(size.edges), FEATURES)
    return Forms(
        partial(matmul, A), partial(torch.sparse.mm, A), (random(FEATURES, size.channels),)
    )


def aggregate(size: Size) -> Forms:
    crow, col, row = graph(size)
    return Forms(
        lambda v, w: edges.aggregate(crow, col, w, v),
        lambda v, w: scatter(w[..., None] * v[col], row, dim_size=size.nodes),
        (heads(size), random(size.edges, HEADS)),
        (0, 1),
    )


def products(size: Size) -> Forms:
    crow, col, row = graph(size)
    return Forms(
        partial(edges.products, crow, col),
        lambda q, k: (q[row] * k[col]).sum(-1),
        (heads(size), heads(size).flip(0)),
        (0, 1),
    )


def additive(size: Size) -> Forms:
    crow, col, row = graph(size)
    return Forms(
        lambda t, s, a: edges.additive(crow, col, t, s, a, 0.2),
        lambda t, s, a: (a * F.leaky_relu(t[row] + s[col], 0.2)).sum(-1),
        (heads(size), heads(size).flip(0), random(HEADS, size.channels // HEADS)),
        (0, 1, 2),
    )


def directional(size: Size) -> Forms:
    crow, col, _ = graph(size)
    return Forms(
        lambda p, k: edges.directional(crow, col, p, k, 1e-6),
        lambda p, k: plain_directional(crow, col, p, k, 1e-6),
        (random(size.nodes, 3), random(size.nodes, HEADS, 4)),
        (0, 1),
    )


def edge_softmax(size: Size) -> Forms:
    crow, _, row = graph(size)
    return Forms(
        partial(edges.softmax, crow),
        lambda scores: pyg_softmax(scores, row, num_nodes=size.nodes),
        (random(size.edges, HEADS),),
    )


def gather(size: Size) -> Forms:
    _, col, _ = graph(size)
    x = random(512, size.channels)
    return Forms(lambda x: edges.gather(x, col % 512), lambda x: x[col % 512], (x,))


def full_attention(size: Size) -> Forms:
    N = min(size.nodes, 3000)
    distances = torch.randint(22, (N, N), dtype=torch.uint8)

    def theirs(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
        mask = bias[:, distances.long()]
        return F.scaled_dot_product_attention(q[None], k[None], v[None], mask[None])[0]

    each = [random(HEADS, N, size.channels // HEADS) * scale for scale in (1.0, 0.9, 0.8)]
    return Forms(
        lambda *inputs: distance_attention(*inputs, distances),
        theirs,
        (*each, random(HEADS, 22)),
        (0, 1, 2, 3),
    )


def pool(size: Size) -> Forms:
    """A chain of operations, each of which allocates its output."""

    def chain(new: Callable[..., Tensor], x: Tensor) -> Tensor:
        for _ in range(10):
            x = torch.mul(x, 1.01, out=new(tuple(x.shape), x.dtype))
        return x

    system = partial(chain, lambda shape, dtype: torch.empty(shape, dtype=dtype))
    return Forms(partial(chain, empty), system, (random(size.nodes, size.channels),), ())


def normalized(size: Size, batch: bool) -> Forms:
    if batch:
        return rows(
            BatchNorm(size.channels),
            lambda x: F.batch_norm(x, None, None, training=True),
            size,
        )
    return rows(LayerNorm(size.channels), lambda x: F.layer_norm(x, x.shape[1:]), size)


def sum_of_heads(size: Size) -> Forms:
    return Forms(lambda x: edges.total(x, 1), lambda x: x.sum(1), (heads(size),))


FORMS = ("ours", "theirs")
OPERATORS: dict[str, tuple[str, Callable[[Size], Forms]]] = {
    "dropout": ("F.dropout", partial(rows, partial(dropout, p=0.5), partial(F.dropout, p=0.5))),
    "dropout, ReLU": (
        "F.relu, F.dropout",
        partial(rows, partial(dropout, p=0.5, relu=True), lambda x: F.dropout(F.relu(x), 0.5)),
    ),
    "dropout, sum": ("F.dropout, +", with_plus),
    "dropout_rows": (
        "F.dropout of ones, *",
        partial(
            rows,
            partial(dropout_rows, p=0.5),
            lambda x: x * F.dropout(torch.ones_like(x[:, :1]), 0.5),
        ),
    ),
    "dropout_linear": ("F.dropout, addmm", dropped_linear),
    "layer norm": ("F.layer_norm", partial(normalized, batch=False)),
    "batch norm": ("F.batch_norm", partial(normalized, batch=True)),
    "linear": ("F.linear", products_of_rows),
    "linear to 7 classes": ("F.linear", partial(products_of_rows, classes=7)),
    "linear, sum": ("F.linear, +", partial(products_of_rows, plus=True)),
    "sparse product": ("torch.sparse.mm", sparse_product),
    "softmax": ("torch.softmax", partial(rows, softmax, partial(torch.softmax, dim=-1))),
    "edges.aggregate": ("PyG's scatter", aggregate),
    "edges.products": ("indexing, sum", products),
    "edges.additive": ("indexing, leaky_relu, sum", additive),
    "edges.directional": ("the plain form", directional),
    "edges.softmax": ("PyG's softmax", edge_softmax),
    "edges.gather": ("indexing", gather),
    "edges.total": ("torch.sum", sum_of_heads),
    "distance_attention": ("SDPA with a mask", full_attention),
    "memory pool": ("torch.empty", pool),
}
"""The peer of each operator, and a function that creates both forms."""
DRAWN = ("dropout", "dropout, ReLU", "dropout_rows")
"""Operators that draw random numbers and are also run in chunks."""
