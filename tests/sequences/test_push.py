"""PageRank in single precision, with hubs, against a dense solve and the exact method."""

import networkx as nx
import numpy as np
import pytest
import torch

import dgt.sequences.ppr
from dgt.config import SequenceConfig
from dgt.data.matrices import adjacency
from dgt.sequences import node_sequences
from dgt.sequences.criterion import Graph
from dgt.sequences.hub_scores import hub_scores
from dgt.sequences.ppr import PPR, ppr_sequences
from dgt.sequences.tie_order import order_nodes
from tests.sequences.graphs import from_networkx
from tests.sequences.test_ppr import exact_scores
from tests.sequences.test_threads import assert_same_bits, threads  # noqa: F401

GRAPHS = {
    "hubs": nx.barabasi_albert_graph(1500, 5, seed=1),
    "communities": nx.random_partition_graph([60] * 20, 0.2, 0.002, seed=1),
    "small world": nx.watts_strogatz_graph(1000, 8, 0.1, seed=1),
    "components": nx.disjoint_union_all(
        [nx.star_graph(8), nx.path_graph(5), nx.empty_graph(3), nx.barabasi_albert_graph(300, 3)]
    ),
}


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dgt.sequences.ppr, "EXACT_NODES", 10)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("count", [1, 40])
def test_scores_of_hubs_are_those_of_a_dense_solve(name: str, count: int) -> None:
    data = from_networkx(GRAPHS[name])
    graph = order_nodes(adjacency(data.edge_index, data.num_nodes))
    hubs = hub_scores(graph, count, 0.15)
    truth = exact_scores(data, 0.15)[graph.nodes][:, graph.nodes[hubs.nodes]]
    other = graph.nodes[:, None] != graph.nodes[hubs.nodes]
    np.testing.assert_allclose(hubs.scores[other], truth[other], atol=2e-4)
    assert (graph.degrees[hubs.nodes] >= np.sort(graph.degrees)[-count]).all()
    np.testing.assert_array_equal(hubs.place[hubs.nodes], np.arange(count))


@pytest.mark.parametrize("length", [16, 64])
@pytest.mark.parametrize("name", ["hubs", "communities", "small world"])
def test_recall_at_the_default_tolerance(name: str, length: int, large: None) -> None:
    data = from_networkx(GRAPHS[name])
    sequences = node_sequences(data, ["ppr"], length)[0].numpy()
    shares = [
        (scores[row] >= np.sort(scores)[-length] - 1e-12).mean()
        for scores, row in zip(exact_scores(data, 0.15), sequences, strict=True)
    ]
    assert np.mean(shares) >= 0.99


@pytest.mark.parametrize("name", GRAPHS)
def test_scores_and_lengths_are_those_of_the_exact_method(name: str) -> None:
    data = from_networkx(GRAPHS[name])
    graph = order_nodes(adjacency(data.edge_index, data.num_nodes))
    exact, exact_values = ppr_sequences(graph, 12, 0.15, 1e-9, lambda done: None)
    hubs = hub_scores(graph, 5, 0.15, 40)
    found, values = ppr_sequences(graph, 12, 0.15, 1e-6, lambda done: None, hubs=hubs)
    np.testing.assert_array_equal(found[:, 0], np.arange(data.num_nodes))
    np.testing.assert_array_equal(found >= 0, exact >= 0)
    np.testing.assert_allclose(values[:, 1:], exact_values[:, 1:], atol=3e-4)
    for row in found:
        nodes = row[row >= 0]
        assert len(np.unique(nodes)) == len(nodes)


def test_weights_are_followed() -> None:
    data = from_networkx(GRAPHS["communities"])
    A = adjacency(data.edge_index, data.num_nodes)
    ends = np.sort(np.stack(A.nonzero()), axis=0)
    A.data = 1.0 + (7 * ends[0] + 3 * ends[1]) % 5
    graph = order_nodes(A)
    exact, _ = ppr_sequences(graph, 8, 0.15, 1e-9, lambda done: None)
    hubs = hub_scores(graph, 3, 0.15)
    found, _ = ppr_sequences(graph, 8, 0.15, 1e-6, lambda done: None, hubs=hubs)
    assert (found == exact).mean() >= 0.98


def test_same_bits_for_every_number_of_threads(large: None) -> None:
    assert_same_bits(from_networkx(GRAPHS["hubs"]), ["ppr"])


def test_names_of_cached_files_change_for_large_graphs_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, settings = Graph(from_networkx(GRAPHS["hubs"])), SequenceConfig()
    assert PPR.method(graph, settings) == ()
    monkeypatch.setattr(dgt.sequences.ppr, "EXACT_NODES", 10)
    assert PPR.method(graph, settings) != ()
    # A tolerance that single precision cannot resolve
    fine = SequenceConfig(ppr_tolerance=1e-12)
    assert PPR.method(graph, fine) == ()
    torch.testing.assert_close(
        node_sequences(graph.data, ["ppr"], 8, 0.15, 1e-12)[0, :, 0].long(),
        torch.arange(graph.num_nodes),
    )
