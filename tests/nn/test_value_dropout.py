"""Dropout of the channels that attention reads."""

import pytest
import torch
from torch import Tensor

from dgt import NodeClassifier
from dgt.nn.attention import DeformableGraphAttention
from tests.small import QUICK, block_graph

N, C = 4000, 8


def what_is_read(value_dropout: float, dropout: float = 0.0, training: bool = True) -> Tensor:
    """Returns the factor by which each channel of each node is read.

    Every sequence holds only the node itself, and the value and output weights are the identity, so
    that attention returns what it reads.
    """
    attention = DeformableGraphAttention(
        C, criteria=1, heads=2, keys=2, dropout=dropout, value_dropout=value_dropout
    ).train(training)
    with torch.no_grad():
        attention.values.weight.copy_(torch.eye(C))
        attention.out.weight.copy_(torch.eye(C))
        z = torch.rand(N, C) + 0.5
        torch.manual_seed(1)
        sequences = torch.arange(N, dtype=torch.int32).view(1, N, 1)
        return attention(z, sequences) / z


@pytest.mark.parametrize("p", [0.2, 0.7])
def test_each_channel_is_dropped_by_itself_and_the_others_are_scaled(p: float):
    read = what_is_read(p)
    kept = read > 0
    assert torch.allclose(read[kept], torch.tensor(1 / (1 - p)))
    assert kept.double().mean().item() == pytest.approx(1 - p, abs=0.02)
    assert read.mean().item() == pytest.approx(1, abs=0.05)
    # The channels of a node are dropped independently of one another.
    correlation = torch.corrcoef(kept.double().T) - torch.eye(C)
    assert correlation.abs().max() < 0.08


def test_with_node_dropout_the_scales_multiply():
    p, nodes = 0.5, 0.4
    read = what_is_read(p, dropout=nodes)
    there = read.amax(dim=1) > 0
    assert there.double().mean().item() == pytest.approx((1 - nodes) * (1 - p**C), abs=0.03)
    kept = read[there]
    assert (kept > 0).double().mean().item() == pytest.approx((1 - p) / (1 - p**C), abs=0.02)
    assert torch.allclose(kept[kept > 0], torch.tensor(1 / ((1 - p) * (1 - nodes))))


def test_nothing_is_dropped_in_evaluation():
    assert torch.allclose(what_is_read(0.7, dropout=0.4, training=False), torch.tensor(1.0))


def test_a_model_trains_with_it_and_it_matters():
    data = block_graph()
    without, first, again = (
        NodeClassifier(**QUICK, value_dropout=p).fit(data) for p in (0.0, 0.6, 0.6)
    )
    assert first.score() > 0.7  # by chance: 0.33
    assert torch.equal(first.predict_proba(), again.predict_proba())
    assert not torch.allclose(first.predict_proba(), without.predict_proba(), atol=1e-3)
