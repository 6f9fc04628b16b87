import networkx as nx
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dgt.sequences import node_sequences
from tests.sequences.graphs import from_networkx, graphs, to_networkx, valid


def by_networkx(data: Data, length: int) -> list[list[int]]:
    graph = to_networkx(data)
    return [
        sorted(hops, key=lambda node: (hops[node], -graph.degree[node], node))[:length]
        for hops in (nx.single_source_shortest_path_length(graph, b) for b in graph)
    ]


@settings(deadline=None)
@given(data=graphs(), length=st.integers(1, 40))
def test_order_is_by_hop_degree_and_id(data: Data, length: int) -> None:
    sequences = node_sequences(data, ["bfs"], length)
    assert sequences.dtype == torch.int32
    assert sequences.shape == (1, data.num_nodes, length)
    assert [valid(row) for row in sequences[0]] == by_networkx(data, length)


def test_hubs_are_cut_like_the_whole_hop_sorted() -> None:
    data = from_networkx(nx.barabasi_albert_graph(600, 4, seed=0))
    sequences = node_sequences(data, ["bfs"], 24)
    assert [valid(row) for row in sequences[0]] == by_networkx(data, 24)
