import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data

from dgt.config import Config, SequenceConfig
from dgt.data.matrices import adjacency
from dgt.sequences import node_sequences
from dgt.sequences.absolute import by_centrality, by_chance, by_hub, by_pagerank, pagerank
from dgt.sequences.criterion import Graph
from tests.sequences.graphs import graphs, to_networkx
from tests.small import block_graph

ORDERS = {
    "absolute-random": by_chance,
    "absolute-bfs": by_hub,
    "absolute-ppr": by_pagerank,
    "absolute-similarity": by_centrality,
}
ABSOLUTE = tuple(ORDERS)


def absolute_order(data: Data, criterion: str) -> np.ndarray:
    return ORDERS[criterion](Graph(data), SequenceConfig(ppr_alpha=0.15))


@settings(deadline=None, max_examples=30)
@given(data=graphs())
def test_every_base_node_sees_the_same_nodes(data: Data) -> None:
    found = node_sequences(data, ABSOLUTE, length=6)
    assert found.dtype == torch.int32
    for criterion, rows in zip(ABSOLUTE, found, strict=True):
        order = absolute_order(data, criterion)
        assert sorted(order.tolist()) == list(range(data.num_nodes))
        kept = min(6, data.num_nodes)
        assert (rows == rows[:1]).all()
        assert rows[0].tolist() == [*order[:kept].tolist(), *[-1] * (6 - kept)]


@settings(deadline=None)
@given(data=graphs())
def test_bfs_starts_from_the_largest_hub(data: Data) -> None:
    graph = to_networkx(data)
    root = min(graph, key=lambda node: (-graph.degree[node], node))
    hops = nx.single_source_shortest_path_length(graph, root)
    truth = sorted(graph, key=lambda n: (hops.get(n, data.num_nodes), -graph.degree[n], n))
    assert absolute_order(data, "absolute-bfs").tolist() == truth


@settings(deadline=None)
@given(data=graphs())
def test_pagerank_is_that_of_networkx(data: Data) -> None:
    truth = nx.pagerank(to_networkx(data), alpha=0.7, tol=1e-13, max_iter=1000)
    found = pagerank(adjacency(data.edge_index, data.num_nodes), 0.3)
    np.testing.assert_allclose(found, [truth[n] for n in range(data.num_nodes)], atol=1e-10)


def test_pagerank_and_similarity_orders() -> None:
    data = block_graph()
    truth = nx.pagerank(to_networkx(data), alpha=0.85, tol=1e-13, max_iter=1000)
    order = absolute_order(data, "absolute-ppr")
    assert order.tolist() == sorted(truth, key=lambda n: (-np.float32(truth[n]), n))
    unit = data.x.double() / data.x.double().norm(dim=1, keepdim=True)
    scores = (unit @ unit.mean(dim=0))[absolute_order(data, "absolute-similarity")]
    assert (scores.diff() < 1e-6).all()


@pytest.mark.parametrize("sparse", [True, False])
def test_similarity_ties_by_id(sparse: bool) -> None:
    x = torch.eye(20)[[0, 0, 1, 2, 2, 2, 3]] if sparse else torch.eye(2)[[0, 0, 1, 1, 1, 0, 1]]
    data = Data(x=x, edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=7)
    truth = [3, 4, 5, 0, 1, 2, 6] if sparse else [2, 3, 4, 6, 0, 1, 5]
    assert absolute_order(data, "absolute-similarity").tolist() == truth


def test_random_order_is_random_and_always_the_same() -> None:
    orders = [absolute_order(block_graph(), "absolute-random").tolist() for _ in range(2)]
    assert orders[0] == orders[1] != sorted(orders[0])


def test_as_a_setting() -> None:
    assert Config.of("dgt").replace(criteria=ABSOLUTE).criteria == ABSOLUTE
