"""Criteria along links, against NetworkX and dense solves."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dgt.errors import InputError
from dgt.sequences import NodeSort, current_sequences, node_sequences
from tests.sequences.graphs import graphs, valid
from tests.sequences.test_threads import assert_same_bits, threads  # noqa: F401


def directed(data: Data) -> Data:
    data.directed_edge_index = data.edge_index
    return data


def of_networkx(graph: nx.DiGraph) -> Data:
    edges = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
    return directed(Data(edge_index=edges, num_nodes=graph.number_of_nodes()))


def to_digraph(data: Data, turned: bool) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from((a, b) for a, b in data.edge_index.T.tolist() if a != b)
    return graph.reverse() if turned else graph


def exact_scores(data: Data, alpha: float, turned: bool) -> np.ndarray:
    """Row b has the scores of base node b of a walk that ends at nodes without links; a node that
    is not reached has 0. The base node comes first."""
    A = nx.to_numpy_array(to_digraph(data, turned), nodelist=range(data.num_nodes))
    walk = A / np.maximum(A.sum(axis=1, keepdims=True), 1)
    scores = alpha * np.linalg.inv(np.eye(len(A)) - (1 - alpha) * walk)
    scores[scores < 1e-14] = 0
    np.fill_diagonal(scores, 1)
    return scores


@settings(deadline=None)
@given(data=graphs(), length=st.integers(1, 40), turned=st.booleans())
def test_bfs_follows_links(data: Data, length: int, turned: bool) -> None:
    sequences = node_sequences(directed(data), ["bfs-in" if turned else "bfs-out"], length)
    graph = to_digraph(data, turned)
    degree = dict(graph.to_undirected().degree)
    for base, row in enumerate(sequences[0]):
        hops = nx.single_source_shortest_path_length(graph, base)
        assert valid(row) == sorted(hops, key=lambda n: (hops[n], -degree[n], n))[:length]


@settings(deadline=None)
@given(
    data=graphs(),
    length=st.integers(1, 40),
    alpha=st.floats(0.05, 0.9),
    turned=st.booleans(),
)
def test_ppr_follows_links(data: Data, length: int, alpha: float, turned: bool) -> None:
    name = "ppr-in" if turned else "ppr-out"
    sequences = node_sequences(directed(data), [name], length, alpha, 1e-13)[0]
    for scores, row in zip(exact_scores(data, alpha, turned), sequences, strict=True):
        nodes = valid(row)
        best = np.sort(scores[scores > 0])[::-1][:length]
        assert len(set(nodes)) == len(nodes) == len(best)
        np.testing.assert_allclose(scores[nodes], best, rtol=1e-6)


def test_a_walk_that_ends_has_the_order_of_one_that_starts_again() -> None:
    data = of_networkx(nx.gnp_random_graph(60, 0.03, seed=3, directed=True))
    A = nx.to_numpy_array(to_digraph(data, False), nodelist=range(60))
    ends = A.sum(axis=1) == 0
    assert ends.any()
    sequences = node_sequences(data, ["ppr-out"], 60, 0.15, 1e-13)[0]
    for base, row in enumerate(sequences):
        walk = A / np.maximum(A.sum(axis=1, keepdims=True), 1)
        walk[ends, base] = 1
        scores = 0.15 * np.linalg.inv(np.eye(60) - 0.85 * walk)[base]
        scores[base] = 1
        nodes = valid(row)
        assert (np.diff(scores[nodes]) <= 1e-12).all()
        assert len(nodes) == (scores > 1e-14).sum()


def test_recall_at_the_default_tolerance() -> None:
    graph = nx.DiGraph(nx.scale_free_graph(1200, seed=1))
    data = of_networkx(graph)
    for turned, name in ((False, "ppr-out"), (True, "ppr-in")):
        found = wanted = 0
        rows = node_sequences(data, [name], 32)[0]
        for scores, row in zip(exact_scores(data, 0.15, turned), rows, strict=True):
            count = min(32, int((scores > 0).sum()))
            least = np.sort(scores)[-count] - 1e-12
            found += (scores[valid(row)] >= least).sum()
            wanted += count
        assert found / wanted >= 0.97, name


def test_weights_count_in_both_directions() -> None:
    edges = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 4, 4, 4]])
    weights = torch.tensor([[1.0], [3], [2], [1], [1], [5]])
    data = Data(edge_index=edges, num_nodes=5, directed_edge_index=edges)
    data.directed_edge_weights = weights
    out, into = node_sequences(data, ["ppr-out", "ppr-in"], 5)
    assert out[0].tolist() == [0, 4, 2, 3, 1]
    assert into[4].tolist() == [4, 0, 3, 1, 2]


def test_every_number_of_threads_gives_the_same_bits() -> None:
    graph = nx.DiGraph(nx.scale_free_graph(1300, seed=0))
    assert_same_bits(of_networkx(graph), ["bfs-out", "bfs-in", "ppr-out", "ppr-in"])


@pytest.mark.parametrize("spacing", ["rank", "score"])
def test_undirected_links_give_the_undirected_sequences(spacing: str) -> None:
    """With every edge in both directions, only what is left of the push differs."""
    edges = torch.tensor(list(nx.barabasi_albert_graph(200, 3, seed=0).edges)).T
    data = Data(edge_index=torch.cat([edges, edges.flip(0)], dim=1), num_nodes=200)
    names = ["bfs", "bfs-out", "bfs-in"]
    bfs, out, into = node_sequences(directed(data), names, 16, spacing=spacing)
    assert torch.equal(bfs, out)
    assert torch.equal(bfs, into)
    ppr, walk = node_sequences(data, ["ppr", "ppr-out"], 16, ppr_tolerance=1e-13, spacing=spacing)
    assert torch.equal(ppr, walk)


def test_a_graph_without_direction_is_refused() -> None:
    data = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2, name="mine")
    for name in ("bfs-out", "ppr-in"):
        with pytest.raises(InputError, match=f"mine: criterion {name} needs directed edges"):
            node_sequences(data, [name])


def test_sequences_are_stale_once_a_link_is_turned_around() -> None:
    data = directed(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3))
    made = NodeSort(["bfs-out"], length=3)(data.clone())
    current_sequences(made)
    made.directed_edge_index = torch.tensor([[1, 1], [0, 2]])
    with pytest.raises(ValueError, match="edges have changed"):
        current_sequences(made)
    made = NodeSort(["bfs"], length=3)(data.clone())
    made.directed_edge_index = torch.tensor([[1, 1], [0, 2]])
    current_sequences(made)
