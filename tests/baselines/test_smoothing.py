"""Smoothed features, and nearest neighbors by them."""

import numpy as np
import pytest
import scipy.sparse
import torch

from dgt.baselines.structures import smoothed, smoothed_neighbors
from dgt.data.matrices import adjacency, to_torch
from tests.small import block_graph


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("small", [10_000, 10])
def test_nearest_neighbors_equal_brute_force(small: int, sparse: bool, monkeypatch):
    monkeypatch.setattr("dgt.baselines.structures.smoothing.SMALL_GRAPH", small)
    data = block_graph()
    x = data.x.numpy().astype(np.float64) * (data.x.numpy() > 0)
    A = adjacency(data.edge_index, 90).toarray()
    given = scipy.sparse.csr_array(x) if sparse else x
    done: list[int] = []
    found = smoothed_neighbors(given, data.edge_index, 2, 5, done.append)
    assert found.shape == (3, 90, 5)
    assert sum(done) == 3 * 90
    for level in found:
        apart = np.linalg.norm(x[:, None] - x[None], axis=2)
        np.testing.assert_array_equal(level, np.argsort(apart, axis=1, kind="stable")[:, :5])
        x = A @ x / np.maximum(A.sum(1, keepdims=True), 1)


@pytest.mark.parametrize("neighbors", [1, 10])
def test_the_index_finds_nearly_all_nearest_neighbors(neighbors: int, monkeypatch):
    data = block_graph(nodes=900, features=8)
    x = data.x.numpy()
    exact = smoothed_neighbors(x, data.edge_index, 1, neighbors)
    monkeypatch.setattr("dgt.baselines.structures.smoothing.SMALL_GRAPH", 10)
    monkeypatch.setattr("dgt.baselines.structures.smoothing.EXACT_NODES", 10)
    done: list[int] = []
    found = smoothed_neighbors(x, data.edge_index, 1, neighbors, done.append)
    assert sum(done) == 2 * 900
    assert found.shape == exact.shape
    assert torch.equal(found[..., 0], exact[..., 0])  # the node itself
    assert (found == exact).float().mean() > 0.95
    for level in found.flatten(0, 1).tolist():
        assert len(set(level)) == neighbors


def test_the_node_itself_fills_up_if_the_index_finds_too_few(monkeypatch):
    monkeypatch.setattr("dgt.baselines.structures.smoothing.SMALL_GRAPH", 1)
    monkeypatch.setattr("dgt.baselines.structures.smoothing.EXACT_NODES", 1)
    x = 2.0 ** np.arange(9)[:, None]
    found = smoothed_neighbors(x, torch.empty(2, 0, dtype=torch.long), 0, 11)
    assert found[0, 0].tolist() == [*range(9), 0, 0]
    assert found[0, 8].tolist() == [*range(8, -1, -1), 8, 8]


def test_ties_by_id():
    found = smoothed_neighbors(np.zeros((5, 3)), torch.empty(2, 0, dtype=torch.long), 1, 3)
    assert found[0].tolist() == [[0, 1, 2], [1, 0, 2], [2, 0, 1], [3, 0, 1], [4, 0, 1]]
    assert smoothed_neighbors(np.zeros((2, 3)), torch.tensor([[0], [1]]), 0, 9).shape == (1, 2, 2)


def test_sparse_smoothed_features_become_a_tensor():
    data = block_graph()
    x = np.random.default_rng(0).integers(0, 2, (90, 200)) * 1.0
    found = smoothed(scipy.sparse.csr_array(x), data.edge_index, 1)
    assert not found.has_sorted_indices  # SciPy does not sort the indices of a product
    assert np.allclose(to_torch(found).to_dense(), smoothed(x, data.edge_index, 1), atol=1e-6)
