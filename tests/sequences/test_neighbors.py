"""The criterion of direct neighbors, compared with NetworkX and with BFS."""

import networkx as nx
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dgt.sequences import node_sequences
from tests.sequences.graphs import from_networkx, graphs, to_networkx, valid


@settings(deadline=None)
@given(data=graphs(), length=st.integers(1, 40))
def test_neighbors_follow_the_base_node_by_degree_and_id(data: Data, length: int) -> None:
    graph = to_networkx(data)
    truth = [
        [base, *sorted(graph[base], key=lambda n: (-graph.degree[n], n))][:length] for base in graph
    ]
    sequences = node_sequences(data, ["neighbors"], length)
    assert sequences.dtype == torch.int32
    assert [valid(row) for row in sequences[0]] == truth


def test_scores_are_those_of_bfs() -> None:
    data = from_networkx(nx.star_graph(5))
    both = node_sequences(data, ["neighbors", "bfs"], 12, spacing="score")
    assert torch.equal(both[0, 0], both[1, 0])  # the center reaches all nodes in one hop
    assert not torch.equal(both[0, 1], both[1, 1])
