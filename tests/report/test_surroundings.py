"""Places of nodes in a graph, against NetworkX."""

import networkx as nx
import numpy as np

from dgt.data.matrices import adjacency
from dgt.report.surroundings import by_degree, by_distance, by_homophily
from tests.sequences.graphs import to_networkx
from tests.small import block_graph

DATA = block_graph()
A = adjacency(DATA.edge_index, 90)
GRAPH = to_networkx(DATA)


def test_degree():
    groups = by_degree(A)
    for node in GRAPH:
        low, _, high = groups.names[groups.member[node]].partition(" to ")
        assert int(low) <= GRAPH.degree(node) <= int(high or low)


def test_local_homophily():
    y = DATA.y.numpy().copy()
    y[::7] = -1
    lonely = 5
    y[list(GRAPH[lonely])] = -1
    groups = by_homophily(A, y)
    for node in GRAPH:
        near = [y[other] == y[node] for other in GRAPH[node] if y[other] >= 0]
        member = groups.member[node]
        if y[node] < 0:
            assert member == -1
        elif not near:
            assert groups.names[member] == "no labeled neighbor"
        else:
            assert member == min(int(np.mean(near) * 5 + 1e-12), 4)
    assert groups.names[groups.member[lonely]] == "no labeled neighbor"


def test_distance_to_training_nodes():
    train = np.zeros(92, dtype=bool)
    train[:3] = True
    # two more nodes, joined with each other alone
    graph = GRAPH.copy()
    graph.add_edge(90, 91)
    matrix = nx.to_scipy_sparse_array(graph, nodelist=range(92), format="csr", weight=None)
    groups = by_distance(matrix.astype(float), train)
    hops = nx.multi_source_dijkstra_path_length(graph, {0, 1, 2})
    for node in range(92):
        name = groups.names[groups.member[node]]
        expected = hops.get(node)
        named = "no path" if expected is None else f"{expected} or more" if expected == 5 else None
        assert name == (named or str(expected))
