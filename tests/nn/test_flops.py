"""FLOPs, compared with counts by hand and with the paper."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from dgt.config import Config
from dgt.data.matrices import adjacency
from dgt.models import build
from dgt.nn import DGT, DGTPlus, Kernel
from dgt.nn.flops import multiply_adds
from dgt.ops.sparse import SparseLinear
from dgt.prepare import prepare
from tests.small import block_graph

SIZES = {  # nodes, features, classes, and the paper's count for its Transformer
    "chameleon": (2277, 2325, 5, 1.06e9),
    "cora": (2708, 1433, 7, 1.26e9),
    "citeseer": (3327, 3703, 6, 2.29e9),
    "squirrel": (5201, 2089, 5, 4.29e9),
}
C = 64


class Transformer(nn.Module):
    """A Transformer with one block, made of PyTorch's own layers."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__()
        self.input = nn.Linear(features, C)
        self.projections = nn.ModuleList(nn.Linear(C, C) for _ in range(6))
        self.head = nn.Linear(C, classes)

    def forward(self, x: Tensor) -> Tensor:
        z = self.input(x)
        q, k, v = (p(z).view(1, -1, 4, C // 4).transpose(1, 2) for p in self.projections[:3])
        read = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(-1, C)
        z = z + self.projections[3](read)
        return self.head(z + self.projections[5](self.projections[4](z).relu()))


@pytest.mark.parametrize("name", SIZES)
def test_the_papers_transformer(name: str) -> None:
    N, features, classes, paper = SIZES[name]
    with FakeTensorMode():
        found = multiply_adds(Transformer(features, classes), {"x": torch.empty(N, features)})
    by_hand = (
        2 * N * N * C  # QK and AV
        + 4 * N * C * C  # projections
        + 2 * N * C * C  # feed-forward
        + N * features * C  # input layer
        + N * C * classes
    )
    assert found == by_hand
    assert found == pytest.approx(paper, abs=0.0055e9)


def test_the_baselines() -> None:
    """The Transformer counts as in the paper. GT adds the eigenvectors and has an MLP of twice the
    width; sparse attention changes only the cost of the attention."""
    data = block_graph(nodes=100, features=12)
    N, edges, F_, classes, k = 100, adjacency(data.edge_index, 100).nnz, 12, 3, 16
    found = {}
    for model in ("transformer", "graphormer", "gt-full", "gt-sparse"):
        config = Config.of(model)
        found[model] = multiply_adds(build(config, F_, classes, 0), prepare(data, config))
    rest = 6 * N * C * C + N * F_ * C + N * C * classes
    assert found["transformer"] == 2 * N * N * C + rest
    # The encoding of each degree is fetched as a sum of one product.
    assert found["graphormer"] == 2 * N * N * C + rest + N * C
    more = 2 * N * C * C + N * k * C
    assert found["gt-full"] == 2 * N * N * C + rest + more
    assert found["gt-sparse"] == 2 * (edges + N) * C + rest + more


@pytest.mark.parametrize("criteria", [1, 3])
@pytest.mark.parametrize(
    ("kernel", "window"),
    [(Kernel("rbf", epsilon=4), 8), (Kernel("rbf", epsilon=8), 10), (Kernel("bilinear"), 2)],
)
def test_dgt(criteria: int, kernel: Kernel, window: int) -> None:
    N, features, classes, L, M, K, anchors = 1000, 50, 7, 10, 4, 3, 30
    T = criteria
    by_hand = (
        N * features * C
        + N * C * C  # second layer of the features
        + N * anchors * C
        + N * C * C  # encoding
        + 2 * (N * C * T * C + N * C * 2 * T * M * K + N * T * K * window * C + N * T * C * C)
        + 2 * 2 * N * C * 2 * C  # two blocks, MLP of twice the width
        + N * C * classes
    )
    sizes = {"heads": M, "keys": K, "blocks": 2, "mlp_ratio": 2, "feature_layers": 2}
    with FakeTensorMode():
        model = DGT(
            features, C, classes, criteria=T, kernel=kernel, encoding_channels=anchors, **sizes
        )
        inputs = {
            "x": torch.empty(N, features),
            "sequences": torch.zeros(T, N, L, dtype=torch.int32),
            "encoding": torch.empty(N, anchors),
        }
        assert multiply_adds(model, inputs) == by_hand


def test_sparse_encodings_count_stored_values_and_features_count_as_dense() -> None:
    data = block_graph(nodes=400, features=200)
    data.x[data.x < 1.9] = 0
    config = Config.of("dgt")
    inputs = prepare(data, config)
    assert inputs["x"].layout == inputs["encoding"].layout == torch.sparse_csr
    model = build(config, 200, 3, 400)
    dense = {name: x.to_dense() for name, x in inputs.items()}
    stored = inputs["encoding"].values().numel()
    found = multiply_adds(model, inputs)
    assert found == multiply_adds(model, dense) - C * (400 * 400 - stored)
    assert multiply_adds(SparseLinear(200, 8), {"x": inputs["x"]}) == 400 * 200 * 8


@pytest.mark.parametrize(("length", "labels"), [(6, "read"), (40, "none")])
def test_scored_attention_reads_each_position_of_the_windows_twice(length, labels) -> None:
    N, F, T, M, K, Y = 50, 7, 2, 4, 2, 4
    model = DGTPlus(
        F, C, 3, label_channels=Y, labels=labels, criteria=T, heads=M, keys=K, feature_layers=1
    )
    inputs = {
        "x": torch.empty(N, F),
        "sequences": torch.zeros(T, N, length, dtype=torch.int32),
        "closeness": torch.empty(T, N, length),
        "labels": torch.empty(N, Y),
    }
    positions = min(K * 8, length - (labels == "read"))  # windows of 8 positions
    by_hand = (
        F * C  # features
        + T * C * C  # values
        + (T * Y * C if labels == "read" else 0)
        + C * 2 * T * M * K  # queries
        + C * T * (C + M)  # probes
        + 2 * positions * T * C
        + T * C * C  # output of the attention
        + 2 * round(model.blocks[0].out.in_features) * C  # MLP
        + C * 3  # logits
    )
    assert multiply_adds(model, inputs) == N * by_hand
