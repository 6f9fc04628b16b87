"""Random graphs for the tests of sequences, and conversion to and from NetworkX."""

import networkx as nx
import numpy as np
import torch
from hypothesis import strategies as st
from torch_geometric.data import Data


@st.composite
def graphs(draw: st.DrawFn, most_nodes: int = 30, features: int = 5) -> Data:
    """Draws graphs with directed edges, duplicates, self-loops, isolated nodes and several
    components. Features are small integers, so that rows repeat, tie and are zero."""
    nodes = draw(st.integers(1, most_nodes))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * nodes))
    seed = draw(st.integers(0, 2**32 - 1))
    x = np.random.default_rng(seed).integers(-1, 3, (nodes, features))
    x[list(draw(st.sets(node, max_size=2)))] = 0
    return Data(
        x=torch.from_numpy(x).float(),
        edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T,
        num_nodes=nodes,
    )


def to_networkx(data: Data) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(range(data.num_nodes))
    graph.add_edges_from((a, b) for a, b in data.edge_index.T.tolist() if a != b)
    return graph


def from_networkx(graph: nx.Graph) -> Data:
    edges = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
    return Data(edge_index=edges, num_nodes=graph.number_of_nodes())


def valid(row: torch.Tensor) -> list[int]:
    """Returns a sequence without its padding, which must be at the end."""
    nodes = row.tolist()
    kept = [node for node in nodes if node != -1]
    assert nodes == kept + [-1] * (len(nodes) - len(kept))
    return kept
