"""The encodings degree, counts and walks."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Data

from dgt import NodeClassifier
from dgt.data.matrices import adjacency
from dgt.encodings.counts import OCTAVES, count_columns
from dgt.encodings.degree import degree_columns
from dgt.encodings.walks import walk_columns
from dgt.errors import InputError
from tests.encodings.test_several import SMALL, links_graph
from tests.sequences.graphs import from_networkx, graphs, to_networkx
from tests.small import block_graph


@settings(deadline=None)
@given(data=graphs())
def test_degrees_are_those_of_networkx(data: Data) -> None:
    graph = to_networkx(data)
    links = nx.DiGraph()
    links.add_nodes_from(range(data.num_nodes))
    links.add_edges_from((a, b) for a, b in data.edge_index.T.tolist() if a != b)
    neighbors = [graph.degree[n] for n in range(data.num_nodes)]
    columns = 10 ** degree_columns(data).double().numpy() - 1
    np.testing.assert_allclose(columns, np.stack([neighbors] * 3, axis=1), rtol=1e-5, atol=1e-5)
    data.directed_edge_index = data.edge_index
    columns = 10 ** degree_columns(data).double().numpy() - 1
    into = [links.in_degree[n] for n in range(data.num_nodes)]
    out = [links.out_degree[n] for n in range(data.num_nodes)]
    np.testing.assert_allclose(
        columns, np.stack([into, out, neighbors], axis=1), rtol=1e-5, atol=1e-5
    )


@settings(deadline=None)
@given(data=graphs())
def test_counts_are_those_of_networkx_and_of_the_features(data: Data) -> None:
    graph = to_networkx(data)
    links = nx.DiGraph()
    links.add_nodes_from(range(data.num_nodes))
    links.add_edges_from((a, b) for a, b in data.edge_index.T.tolist() if a != b)
    random = np.random.default_rng(0)
    data.x = torch.from_numpy(random.integers(-1, 2, (data.num_nodes, 9))).float()
    data.directed_edge_index = data.edge_index
    counts = [
        (
            links.in_degree[node],
            links.out_degree[node],
            graph.degree[node],
            sum(value != 0 for value in data.x[node].tolist()),
        )
        for node in range(data.num_nodes)
    ]
    columns = count_columns(data)
    assert columns.dtype == torch.float32
    shares = columns.double().numpy().reshape(data.num_nodes, 4, OCTAVES + 1)
    np.testing.assert_allclose(shares.sum(axis=-1), 1, atol=1e-6)
    assert ((shares > 0).sum(axis=-1) <= 2).all()
    # The mean of the columns' numbers, weighted by the shares, is the logarithm.
    found = 2 ** (shares * np.arange(OCTAVES + 1)).sum(axis=-1) - 1
    np.testing.assert_allclose(found, counts, rtol=1e-4, atol=1e-4)


def test_the_shares_of_a_count_are_those_of_linear_interpolation() -> None:
    data = block_graph(60)
    data.x = torch.tril(torch.ones(60, 60), diagonal=-1)  # node n has n features
    shares = count_columns(data)[:, -OCTAVES - 1 :].numpy()
    for k in range(OCTAVES + 1):
        peak = np.arange(OCTAVES + 1) == k
        truth = np.interp(np.log2(1 + np.arange(60)), np.arange(OCTAVES + 1), peak)
        np.testing.assert_allclose(shares[:, k], truth, atol=1e-6)


def test_counts_do_not_depend_on_how_features_are_stored() -> None:
    data = block_graph(60)
    data.x = torch.eye(60)[:, :40]
    dense = count_columns(data)
    data.x = data.x.to_sparse_coo()
    assert torch.equal(count_columns(data), dense)
    data.x = 100 * data.x.to_dense()
    assert torch.equal(count_columns(data), dense)


@settings(deadline=None)
@given(data=graphs())
def test_walks_are_the_diagonals_of_dense_powers(data: Data) -> None:
    A = nx.to_numpy_array(to_networkx(data), nodelist=range(data.num_nodes))
    walk = A / np.maximum(A.sum(axis=1, keepdims=True), 1)
    truth = [np.linalg.matrix_power(walk, k).diagonal() for k in range(2, 17)]
    columns = walk_columns(adjacency(data.edge_index, data.num_nodes), exact=True)
    assert columns.dtype == torch.float32
    np.testing.assert_allclose(columns**2, np.stack(truth, axis=1), rtol=1e-4, atol=1e-6)


def test_the_estimate_has_the_stated_error() -> None:
    data = from_networkx(nx.barabasi_albert_graph(1500, 4, seed=0))
    A = adjacency(data.edge_index, 1500)
    exact, estimate = (walk_columns(A, exact=way).double() ** 2 for way in (True, False))
    even = slice(0, None, 2)
    error = (estimate / exact - 1)[:, even]
    assert 0.05 < float(error.std()) < 0.12
    assert abs(float(error.mean())) < 0.05
    root = (estimate.sqrt() / exact.sqrt() - 1)[:, even]
    assert float(root.std()) < 0.06


@pytest.mark.parametrize("name", ["degree", "counts", "walks"])
def test_they_carry_over_to_another_graph(name: str) -> None:
    model = NodeClassifier(**SMALL, encoding=name).fit(block_graph(60))
    other = block_graph(40)
    other.edge_index = torch.from_numpy(np.random.default_rng(1).integers(0, 40, (2, 99)))
    other.directed_edge_index = None
    assert len(model.predict(other)) == 40


def test_degrees_with_direction_need_it_later_on() -> None:
    model = NodeClassifier(**SMALL, encoding=["degree", "walks"]).fit(links_graph())
    assert model.facts_.encoding_widths == [3, 15]
    other = block_graph(40)
    edges = torch.from_numpy(np.random.default_rng(1).integers(0, 40, (2, 99)))
    other.edge_index = edges
    assert len(model.predict(other)) == 40  # read as directed, like the training graph
    other.edge_index = torch.cat([edges, edges.flip(0)], dim=1)
    with pytest.raises(InputError, match="all edges are in both directions"):
        model.predict(other)
