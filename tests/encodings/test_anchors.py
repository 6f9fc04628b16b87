"""The number of anchors by the size of the graph and by budget."""

import networkx as nx
import numpy as np
import pytest
import torch

import dgt.encodings.anchors as anchors
from dgt import NodeClassifier
from dgt.config import Config
from dgt.data.matrices import adjacency
from dgt.encodings import choose_anchors, katz
from dgt.prepare import prepare
from dgt.training import budget
from tests.sequences.graphs import from_networkx
from tests.small import block_graph


def test_the_size_decides_by_default() -> None:
    edges = torch.tensor([[0, 1], [1, 2]])
    assert len(choose_anchors(edges, 8192)) == 8192
    assert len(choose_anchors(edges, 8193)) == 128
    assert len(choose_anchors(edges, 8193, rule="budget")) == 8193
    assert len(choose_anchors(edges, 8193, 50, rule="budget")) == 50


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("values", [2, 8, 32])
def test_the_budget_is_kept_and_used(
    order: int, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchors, "SMALL_GRAPH", 10)
    monkeypatch.setattr(anchors, "FEW_ANCHORS", 2)
    monkeypatch.setattr(anchors, "VALUES_PER_NODE", values)
    data = from_networkx(nx.barabasi_albert_graph(400, 3, seed=0))
    chosen = choose_anchors(data.edge_index, 400, rule="budget", order=order)
    degrees = np.diff(adjacency(data.edge_index, 400).indptr)
    if len(chosen) == 400:
        assert chosen.tolist() == list(range(400))
    else:
        by_degree = sorted(range(400), key=lambda node: (-degrees[node], node))
        assert chosen.tolist() == by_degree[: len(chosen)]
    columns = katz(data.edge_index, 400, order=order, anchors=chosen)
    stored = columns.values().numel() / 400
    assert stored <= values
    if order == 1:  # where the bound is exact, one more anchor would exceed it
        more = degrees[np.argsort(-degrees, kind="stable")[: len(chosen) + 1]].sum() / 400
        assert len(chosen) == 400 or more > values
    assert (len(chosen) == 400) == (order == 1 and values >= 8)


def test_paths_and_anchors_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "SMALL_GRAPH", 10)
    A = adjacency(from_networkx(nx.star_graph(500)).edge_index, 501)
    assert anchors.affordable_anchors(A, 1) == 501
    assert anchors.affordable_anchors(A, 2) < 501  # the leaves reach each other
    monkeypatch.setattr(anchors, "MOST_ANCHORS", 200)
    assert anchors.affordable_anchors(A, 1) == 200
    monkeypatch.setattr(anchors, "PATHS_PER_NODE", 1)
    assert anchors.affordable_anchors(A, 1) < 200


def test_a_model_with_anchors_by_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "SMALL_GRAPH", 20)
    monkeypatch.setattr(anchors, "FEW_ANCHORS", 5)
    data = block_graph(60)
    small = {"model": "dgt", "hidden_channels": 8, "heads": 2, "keys": 2, "length": 4, "epochs": 2}
    few = NodeClassifier(**small).fit(data)
    assert len(few.facts_.anchors or []) == 5
    every = NodeClassifier(**small, anchor_rule="budget").fit(data)
    assert len(every.facts_.anchors or []) == 60
    assert torch.equal(every.predict(data), every.predict())
    columns = prepare(data, Config.of("dgt").replace(anchor_rule="budget"))["encoding"]
    assert columns is not None
    assert columns.size(1) == 60


def test_the_prediction_of_memory_counts_the_first_layer() -> None:
    config = Config.of("dgt")
    arguments = (config, 1000, 500, 10.0, 20.0, 5)
    assert budget.warning(*arguments, room=10**9) is None
    assert budget.warning(*arguments, room=10**9, columns=10**6) is not None
    assert budget.of_first_layer(config, 10**6) == 6 * 4 * 64 * 10**6
