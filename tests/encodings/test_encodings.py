from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from dgt.encodings import Katz, choose_anchors, katz, laplacian
from dgt.errors import InputError
from tests.sequences.graphs import graphs
from tests.small import block_graph


def dense_adjacency(data: Data) -> np.ndarray:
    A = np.zeros((data.num_nodes, data.num_nodes))
    for a, b in data.edge_index.T.tolist():
        if a != b:
            A[a, b] = A[b, a] = 1
    return A


def dense_katz(
    A: np.ndarray, order: int, beta: float, scaling: str, anchors: list[int]
) -> np.ndarray:
    total = sum(beta ** (k - 1) * np.linalg.matrix_power(A, k) for k in range(1, order + 1))
    columns = np.stack([total[:, a] if a >= 0 else np.zeros(len(A)) for a in anchors], axis=1)
    for row in columns:
        size = {"sum": row.sum(), "l2": np.linalg.norm(row), "none": 1}[scaling]
        if size > 0:
            row /= size
    return columns


@settings(deadline=None)
@given(
    data=graphs(),
    order=st.integers(1, 4),
    beta=st.floats(0.01, 1),
    scaling=st.sampled_from(["sum", "l2", "none"]),
    seed=st.integers(0, 1000),
)
def test_columns_are_those_of_dense_powers(
    data: Data, order: int, beta: float, scaling: str, seed: int
) -> None:
    random = np.random.default_rng(seed)
    chosen = random.permutation(data.num_nodes)[: random.integers(1, data.num_nodes + 1)]
    anchors = [-1, *chosen.tolist(), -1]
    result = katz(
        data.edge_index,
        data.num_nodes,
        order=order,
        beta=beta,
        scaling=scaling,
        anchors=torch.tensor(anchors),
    )
    assert result.layout == torch.sparse_csr
    assert result.dtype == torch.float32
    assert result.shape == (data.num_nodes, len(anchors))
    truth = dense_katz(dense_adjacency(data), order, beta, scaling, anchors)
    np.testing.assert_allclose(result.to_dense().numpy(), truth, rtol=1e-5, atol=1e-12)
    starts = result.crow_indices().tolist()
    for start, stop in pairwise(starts):
        row = result.col_indices()[start:stop].tolist()
        assert row == sorted(set(row))


@settings(deadline=None)
@given(data=graphs(), count=st.integers(1, 30))
def test_anchors_are_the_nodes_of_highest_degree(data: Data, count: int) -> None:
    degrees = dense_adjacency(data).sum(axis=1)
    anchors = choose_anchors(data.edge_index, data.num_nodes, count)
    assert anchors.dtype == torch.int64
    if data.num_nodes <= count:
        assert anchors.tolist() == list(range(data.num_nodes))
    else:
        order = sorted(range(data.num_nodes), key=lambda node: (-degrees[node], node))
        assert anchors.tolist() == order[:count]


def test_transform() -> None:
    data = block_graph()
    transform = Katz(order=3, beta=0.3, scaling="sum", anchors=20)
    result = transform(data.clone())
    assert torch.equal(result.anchors, choose_anchors(data.edge_index, 90, 20))
    truth = dense_katz(dense_adjacency(data), 3, 0.3, "sum", result.anchors.tolist())
    np.testing.assert_allclose(result.katz.to_dense().numpy(), truth, rtol=1e-5, atol=1e-9)
    assert repr(transform) == "Katz(order=3, beta=0.3, scaling='sum', anchors=20)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scaling": "l3"}, "scaling: got 'l3', expected one of sum, l2, none"),
        ({"order": 0}, "order: got 0, expected at least 1"),
        ({"anchors": torch.tensor([90])}, "anchors: node 90 is not one of the 90 nodes"),
        ({"anchors": torch.tensor([-2])}, "anchors: node -2 is not one of the 90 nodes"),
    ],
)
def test_wrong_settings(arguments: dict, message: str) -> None:
    with pytest.raises(InputError) as caught:
        katz(block_graph().edge_index, 90, **{"anchors": torch.arange(3), **arguments})
    assert message in str(caught.value)


def dense_laplacian(data: Data) -> np.ndarray:
    A = dense_adjacency(data)
    roots = np.diag(1 / np.sqrt(np.maximum(A.sum(0), 1)))
    return np.diag(A.sum(0) > 0) - roots @ A @ roots


@settings(deadline=None)
@given(data=graphs(), k=st.integers(1, 12))
def test_laplacian_has_the_smallest_eigenvalues_above_zero(data: Data, k: int) -> None:
    L = dense_laplacian(data)
    columns = laplacian(data.edge_index, data.num_nodes, k).double().numpy()
    assert columns.shape == (data.num_nodes, k)
    values = np.linalg.eigvalsh(L)
    expected = values[values > 1e-9][:k]
    found, rest = columns[:, : len(expected)], columns[:, len(expected) :]
    np.testing.assert_allclose(found.T @ found, np.eye(len(expected)), atol=1e-3)
    np.testing.assert_allclose(L @ found, found * expected, atol=1e-3)
    assert (rest == 0).all()
    largest = np.take_along_axis(columns, abs(columns).argmax(0)[None], axis=0)
    assert (largest >= 0).all()


def test_laplacian_of_a_larger_graph_with_two_parts() -> None:
    ring = torch.arange(700)
    edges = torch.stack([ring, ring.roll(-1)])
    both = torch.cat([edges, edges + 700], dim=1)
    columns = laplacian(both, 1401, 4).double().numpy()  # and an isolated node
    # A ring of n nodes has the eigenvalue 1 - cos(2 pi / n) twice, so there are four of them.
    L = dense_laplacian(Data(edge_index=both, num_nodes=1401))
    found = L @ columns
    np.testing.assert_allclose(found, (1 - np.cos(2 * np.pi / 700)) * columns, atol=1e-5)
    np.testing.assert_allclose(columns.T @ columns, np.eye(4), atol=1e-2)
    assert (columns[-1] == 0).all()
    assert (laplacian(both, 1401, 4).numpy() == columns).all()
