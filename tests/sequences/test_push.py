"""PageRank in single precision, with hubs, against a dense solve and the exact method."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics import normalized_mutual_info_score

import dgt.sequences.make
import dgt.sequences.ppr
from dgt.config import SequenceConfig
from dgt.data.matrices import adjacency
from dgt.sequences import node_sequences
from dgt.sequences.communities import LARGEST, communities
from dgt.sequences.criterion import Graph
from dgt.sequences.hub_scores import forgetting, hub_scores
from dgt.sequences.near import with_near
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
        [
            *(nx.star_graph(8), nx.path_graph(5), nx.empty_graph(3)),
            nx.barabasi_albert_graph(300, 3, seed=1),
        ]
    ),
    "whiskers": nx.disjoint_union(nx.lollipop_graph(60, 30), nx.path_graph(2)),
    "dense": nx.disjoint_union(nx.gnp_random_graph(400, 0.3, seed=1), nx.cycle_graph(40)),
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
    np.testing.assert_allclose(hubs.scores[:, :count][other], truth[other], atol=2e-4)
    assert (graph.degrees[hubs.nodes] >= np.sort(graph.degrees)[-count]).all()
    np.testing.assert_array_equal(hubs.column[hubs.nodes], np.arange(count))


def test_scores_of_hubs_hold_where_the_estimate_of_forgetting_varies() -> None:
    for seed in range(12):
        data = from_networkx(nx.barabasi_albert_graph(300, 3, seed=seed))
        graph = order_nodes(adjacency(data.edge_index, data.num_nodes))
        hubs = hub_scores(graph, 40, 0.15)
        truth = exact_scores(data, 0.15)[graph.nodes][:, graph.nodes[hubs.nodes]]
        other = graph.nodes[:, None] != graph.nodes[hubs.nodes]
        np.testing.assert_allclose(hubs.scores[:, :40][other], truth[other], atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", GRAPHS)
def test_a_walk_forgets_its_start_by_the_second_eigenvalue(name: str, weighted: bool) -> None:
    """From below, and at most 0.05: what a smaller estimate costs is in the scores, tested above
    and below."""
    data = from_networkx(GRAPHS[name])
    A = adjacency(data.edge_index, data.num_nodes)
    if weighted:
        A.data[:] = 1 + (A.indices + np.repeat(np.arange(len(A.indptr) - 1), np.diff(A.indptr))) % 3
    graph = order_nodes(A)
    first = int(graph.first[np.argmax(graph.stop - graph.first)])
    stop = int(graph.stop[first])
    dense = A.toarray()[np.ix_(graph.nodes[first:stop], graph.nodes[first:stop])]
    root = np.sqrt(dense.sum(axis=1))
    second = np.sort(np.abs(np.linalg.eigvalsh(dense / root / root[:, None])))[-2]
    found = forgetting(graph, first, stop)
    assert second - 0.05 < found <= second + 1e-9


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
def test_near_and_far_scores_add_up_to_those_of_a_dense_solve(name: str, tolerance: float) -> None:
    """For each base node and each community, the scores of the nodes that are near and of all
    others."""
    data = from_networkx(GRAPHS[name])
    graph = order_nodes(adjacency(data.edge_index, data.num_nodes))
    hubs = with_near(graph, hub_scores(graph, 5, 0.15, groups=8), 0.15, tolerance, 32)
    truth = exact_scores(data, 0.15)[graph.nodes][:, graph.nodes]
    base = np.arange(data.num_nodes)
    truth[base, base] = np.where(graph.degrees > 0, 2 - truth.sum(axis=1), 0.15)
    near = hubs.values * np.maximum(graph.degrees, 1)[hubs.near]
    own = np.take_along_axis(truth, hubs.near.astype(int), axis=1)
    assert (near <= own + 1e-4).all()
    for c in range(5, 13):
        found = hubs.scores[:, c] + (near * (hubs.column[hubs.near] == c)).sum(axis=1)
        wanted = truth[:, hubs.column == c].sum(axis=1)
        others = hubs.column >= 5
        np.testing.assert_allclose(found[others], wanted[others], atol=5e-4)


def test_nodes_that_are_near_have_the_largest_scores() -> None:
    data = from_networkx(GRAPHS["small world"])
    graph = order_nodes(adjacency(data.edge_index, data.num_nodes))
    hubs = with_near(graph, hub_scores(graph, 0, 0.15), 0.15, 1e-6, 16)
    truth = exact_scores(data, 0.15)[graph.nodes][:, graph.nodes]
    keys = truth / np.sqrt(graph.degrees)
    least = np.sort(keys, axis=1)[:, -16, None]
    # Nodes are chosen by bins, an eighth of an octave of the square wide.
    assert (np.take_along_axis(keys, hubs.near.astype(int), axis=1) >= 0.9 * least).all()
    assert all(len(set(row)) == 16 for row in hubs.near.tolist())
    others = hubs.near != np.arange(len(truth))[:, None]
    own = np.take_along_axis(truth, hubs.near.astype(int), axis=1)
    near = hubs.values * graph.degrees[hubs.near]
    np.testing.assert_allclose(near[others], own[others], atol=1e-4)


def test_communities_are_those_that_were_planted() -> None:
    graph = nx.random_partition_graph([100] * 8, 0.15, 0.005, seed=1)
    data = from_networkx(graph)
    ordered = order_nodes(adjacency(data.edge_index, data.num_nodes))
    found = communities(ordered, 16)
    planted = ordered.nodes // 100
    assert normalized_mutual_info_score(planted, found) > 0.8
    assert found.min() >= 0
    assert found.max() < 16
    volumes = np.bincount(found, ordered.degrees, 16)
    assert volumes.max() <= (LARGEST + 0.1) * ordered.degrees.sum() / 16 + ordered.degrees.max()


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
    hubs = with_near(graph, hub_scores(graph, 5, 0.15, 40, 4), 0.15, 1e-6, 64)
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
    hubs = with_near(graph, hub_scores(graph, 3, 0.15, groups=4), 0.15, 1e-6, 64)
    found, _ = ppr_sequences(graph, 8, 0.15, 1e-6, lambda done: None, hubs=hubs)
    assert (found == exact).mean() >= 0.98


def test_same_bits_for_every_number_of_threads(large: None) -> None:
    assert_same_bits(from_networkx(GRAPHS["hubs"]), ["ppr"])


def test_every_phase_has_a_progress_bar(large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """And each of them reaches its end."""
    left: dict[str, int] = {}

    @contextmanager
    def bar(title: str, total: int, shown: bool | None = None) -> Iterator[Callable[[int], None]]:
        def advance(done: int) -> None:
            left[title] -= done

        left[title] = total
        yield advance

    monkeypatch.setattr(dgt.sequences.ppr, "progress_bar", bar)
    monkeypatch.setattr(dgt.sequences.make, "progress_bar", bar)
    node_sequences(from_networkx(GRAPHS["small world"]), ["ppr"], 8)
    assert left == {
        "Scoring hubs for PageRank": 0,
        "Scoring near nodes for PageRank": 0,
        "Sorting nodes by ppr": 0,
    }


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
