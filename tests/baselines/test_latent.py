"""The embedding of nodes in a plane, and their neighbors there."""

import numpy as np
import torch
from scipy.spatial.distance import pdist, squareform
from sklearn.manifold import Isomap

from dgt.baselines.structures.latent import RELATIONS, isomap, latent_relations
from dgt.data.matrices import adjacency
from tests.small import block_graph


def test_a_path_lies_on_a_line():
    path = torch.tensor([range(9), range(1, 10)])
    points = isomap(path, 10)
    np.testing.assert_allclose(abs(np.diff(points[:, 0])), 1, atol=1e-4)
    np.testing.assert_allclose(points[:, 1], 0, atol=1e-2)


def test_isomap_equals_scikit_learn():
    data = block_graph()
    ours = isomap(data.edge_index, 90)
    A = adjacency(data.edge_index, 90).toarray()
    hops = np.full((90, 90), np.inf)
    for k in range(90, -1, -1):
        hops[np.linalg.matrix_power(A, k) > 0] = k
    assert np.isfinite(hops).all()
    theirs = Isomap(n_neighbors=89, n_components=2, metric="precomputed").fit_transform(hops)
    np.testing.assert_allclose(pdist(ours), pdist(theirs), atol=1e-3)


def test_neighbors_by_quadrant():
    data = block_graph()
    A = adjacency(data.edge_index, 90).toarray()
    points = isomap(data.edge_index, 90)
    apart = squareform(pdist(points))
    cells = latent_relations(data.edge_index, 90).to_dense().view(90, RELATIONS, 90, RELATIONS)
    by_relation = torch.stack([cells[:, r, :, r] for r in range(RELATIONS)]).numpy()
    np.testing.assert_array_equal(by_relation[0], np.eye(90, dtype=np.float32))
    graph, plane = by_relation[1:5], by_relation[5:]
    np.testing.assert_array_equal(graph.sum(0) > 0, A > 0)
    near = plane.sum(0) > 0
    assert abs(near.sum() - A.sum()) <= 4  # as many neighbors as in the graph
    assert apart[near].max() <= apart[~near & ~np.eye(90, dtype=bool)].min() + 1e-9
    for each, degrees in ((graph, A.sum(1)), (plane, near.sum(1))):
        for r in range(4):
            for v, u in zip(*each[r].nonzero(), strict=True):
                step = points[u] - points[v]
                assert r == 2 * (step[0] > 0) + (step[1] > 0)
                np.testing.assert_allclose(
                    each[r][v, u], 1 / np.sqrt(degrees[v] * degrees[u]), rtol=1e-5
                )


def test_disconnected_components():
    edges = torch.tensor([[0, 1, 3], [1, 2, 4]])
    points = isomap(edges, 6)
    assert np.isfinite(points).all()
    assert latent_relations(edges, 6).shape == (54, 54)
