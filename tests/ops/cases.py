"""Random inputs of any size for every operator."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from dgt.ops.half import statistics_type
from tests.ops.conftest import make_case


class Draw:
    """Draws random tensors of one dtype."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.dtype = dtype

    def __call__(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64).to(self.dtype)

    def integer(self, low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=self.generator))

    def graph(self, N: int, sources: int) -> tuple[Tensor, Tensor]:
        """Returns crow and col of a graph, which may have isolated nodes and duplicate edges."""
        degrees = torch.randint(0, 4, (N,), generator=self.generator)
        crow = torch.cat([degrees.new_zeros(1), degrees.cumsum(0)])
        col = torch.randint(sources, (int(crow[-1]),), generator=self.generator)
        return crow, col


Case = Callable[[Draw, int, int, int], tuple[Any, ...]]


def aggregate(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    crow, col = draw.graph(N, N + 2)
    return crow, col, draw(len(col), H), draw(N + 2, H, C)


def aggregate_back(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    crow, col = draw.graph(N, N + 2)
    return crow, col, draw(len(col), H), draw(N, H, C), N + 2


def products(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    return *draw.graph(N, N + 2), draw(N, H, C), draw(N + 2, H, C)


def additive(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    return *products(draw, N, H, C), draw(H, C), 0.2


def additive_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    inputs = additive(draw, N, H, C)
    return draw(len(inputs[1]), H), *inputs


def directional(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    places = draw(N, C)
    places[N // 2] = places[0]  # two nodes at the same place
    return *draw.graph(N, N), places, draw(N, H, C + 1), 1e-6


def directional_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    inputs = directional(draw, N, H, C)
    return draw(len(inputs[1]), H), *inputs


def edge_softmax(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    crow, col = draw.graph(N, N)
    return crow, 5 * draw(len(col), H)


def edge_softmax_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    crow, col = draw.graph(N, N)
    return crow, draw(len(col), H), draw(len(col), H)


def csr_matmul(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    crow, col = draw.graph(N, N + 2)
    return crow, col, draw(len(col)), draw(N + 2, C)


def csr_matmul_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    crow, col = draw.graph(N, N + 2)
    return crow, col, draw(len(col)), draw(N, C), N + 2


def dropout(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    relu = bool(H % 2)
    plus = None if relu else draw(N, C)
    seed, start = draw.integer(0, 2**62), draw.integer(0, 30000)
    return draw(N, C), torch.tensor(seed), draw.integer(1, 9) / 10, relu, plus, start


def relu_dropout_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    return draw(N, C), draw(N, C).relu(), 0.3


def dropout_linear(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    seed, row = torch.tensor(draw.integer(0, 2**61)), 8192 - N // 2  # the rows span two seeds
    return draw(N, H), draw(H, C), draw(C), seed, 0.3, row


def dropout_linear_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    x, _, _, seed, p, row = dropout_linear(draw, N, H, C)
    return draw(N, C), x, seed, p, row


def linear(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    return draw(N, H), draw(H, C), (None, draw(C), draw(N, C))[(N + H + C) % 3]


def statistics(x: Tensor) -> Tensor:
    return x.to(statistics_type(x))


def layer_norm_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    return draw(N, C), draw(N, C), statistics(draw(N).exp())


def softmax_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    return draw(N, H, C), draw(N, H, C).softmax(-1)


def distance_attention(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    distances = torch.randint(5, (N, N + 1), generator=draw.generator, dtype=torch.uint8)
    return draw(H, N, C), draw(H, N + 1, C), draw(H, N + 1, C), draw(H, 5), distances


def distance_attention_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    query, key, value, bias, distances = inputs = distance_attention(draw, N, H, C)
    scores = query @ key.mT + bias[:, distances.long()]
    out, log_sum = scores.softmax(-1) @ value, scores.logsumexp(-1, keepdim=True)
    return draw(H, N, C), *inputs, out, statistics(log_sum)


def deformable_attention(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    sizes = {"N": N + 1, "Q": N, "T": 2, "M": H, "K": 3, "L": C + 1, "D": 4}
    inputs = make_case(**sizes, seed=draw.integer(0, 10**6), dtype=torch.float64)
    values, sequences, query = (x.to(draw.dtype) if x.is_floating_point() else x for x in inputs)
    return values, sequences, query, bool(C % 2), 4.0, 2.5, bool(N % 2)


def deformable_attention_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    return draw(N, 2, H, 4), *deformable_attention(draw, N, H, C)


def scored_attention(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    values, sequences, query, *kernel = deformable_attention(draw, N, H, C)
    closeness, probe = draw(2, N, C + 1), draw(N, 2, H, 5)
    return values, sequences, closeness, query, probe, *kernel, H % 2


def scored_attention_backward(draw: Draw, N: int, H: int, C: int) -> tuple[Any, ...]:
    return draw(N, 2, H, 4), *scored_attention(draw, N, H, C)


CASES: dict[str, Case] = {
    "edge_aggregate": aggregate,
    "edge_aggregate_back": aggregate_back,
    "edge_products": products,
    "edge_additive": additive,
    "edge_additive_backward": additive_backward,
    "edge_directional": directional,
    "edge_directional_backward": directional_backward,
    "edge_softmax": edge_softmax,
    "edge_softmax_backward": edge_softmax_backward,
    "csr_matmul": csr_matmul,
    "csr_matmul_backward": csr_matmul_backward,
    "dropout": dropout,
    "relu_dropout_backward": relu_dropout_backward,
    "dropout_linear": dropout_linear,
    "dropout_linear_backward": dropout_linear_backward,
    "linear": linear,
    "layer_norm": lambda draw, N, H, C: (draw(N, C + 1),),
    "layer_norm_backward": layer_norm_backward,
    "softmax": lambda draw, N, H, C: (draw(N, H, C),),
    "softmax_backward": softmax_backward,
    "distance_attention": distance_attention,
    "distance_attention_backward": distance_attention_backward,
    "deformable_attention": deformable_attention,
    "deformable_attention_backward": deformable_attention_backward,
    "scored_attention": scored_attention,
    "scored_attention_backward": scored_attention_backward,
}
DATA = {"csr_matmul": (2,), "dropout_linear": (0,), "scored_attention": (2,)}
"""Indices of the inputs that are data and get no gradient."""
