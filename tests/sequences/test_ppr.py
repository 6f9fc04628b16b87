import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dgt.sequences import node_sequences
from tests.sequences.graphs import from_networkx, graphs, to_networkx, valid


def exact_scores(data: Data, alpha: float) -> np.ndarray:
    """Row b has the scores of base node b, from a dense solve, with the base node first."""
    graph = to_networkx(data)
    A = nx.to_numpy_array(graph, nodelist=range(data.num_nodes))
    walk = A / np.maximum(A.sum(axis=0), 1)
    scores = alpha * np.linalg.inv(np.eye(len(A)) - (1 - alpha) * walk).T
    for component in nx.connected_components(graph):
        members = list(component)
        others = np.setdiff1d(np.arange(len(A)), members)
        scores[np.ix_(members, others)] = 0
    np.fill_diagonal(scores, 1)
    return scores


@settings(deadline=None)
@given(data=graphs(), length=st.integers(1, 40), alpha=st.floats(0.05, 0.9))
def test_order_is_that_of_a_dense_solve(data: Data, length: int, alpha: float) -> None:
    sequences = node_sequences(data, ["ppr"], length, alpha, 1e-13)[0]
    for scores, row in zip(exact_scores(data, alpha), sequences, strict=True):
        nodes = valid(row)
        best = np.sort(scores[scores > 0])[::-1][:length]
        assert len(set(nodes)) == len(nodes) == len(best)
        np.testing.assert_allclose(scores[nodes], best, rtol=1e-6)


@pytest.mark.parametrize("graph", [nx.complete_graph(9), nx.star_graph(8), nx.empty_graph(3)])
def test_base_node_first_and_ties_by_id(graph: nx.Graph) -> None:
    data = from_networkx(graph)
    scores = exact_scores(data, 0.15).round(10)
    sequences = node_sequences(data, ["ppr"], 9, 0.15, 1e-13)[0]
    for base, row in enumerate(sequences):
        order = np.argsort(-scores[base], kind="stable")
        assert valid(row) == [node for node in order if scores[base, node] > 0]


@pytest.mark.parametrize(
    "graph",
    [
        nx.barabasi_albert_graph(1500, 5, seed=1),
        nx.random_partition_graph([60] * 20, 0.2, 0.002, seed=1),
        nx.watts_strogatz_graph(1000, 8, 0.1, seed=1),
    ],
    ids=["hubs", "communities", "small world"],
)
def test_recall_at_the_default_tolerance(graph: nx.Graph) -> None:
    data = from_networkx(graph)
    found, wanted = 0, 0
    for scores, row in zip(
        exact_scores(data, 0.15), node_sequences(data, ["ppr"], 64)[0], strict=True
    ):
        least = np.sort(scores)[-64] - 1e-12
        found += (scores[valid(row)] >= least).sum()
        wanted += 64
    assert found / wanted >= 0.99


def test_what_is_left_unpushed_is_counted() -> None:
    """A coarse push reaches few nodes, but the sequences are full and nearly exact."""
    data = from_networkx(nx.barabasi_albert_graph(1500, 5, seed=1))
    sequences = node_sequences(data, ["ppr"], 64, 0.15, 1e-3)[0]
    assert (sequences >= 0).all()
    scores = exact_scores(data, 0.15)
    recall = np.mean(
        [(s[row] >= np.sort(s)[-64]).mean() for s, row in zip(scores, sequences, strict=True)]
    )
    assert recall >= 0.9
