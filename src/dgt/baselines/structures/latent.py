"""The embedding of the nodes in a plane that Geom-GCN uses."""

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from torch import Tensor

from dgt.baselines.structures.distances import shortest_paths
from dgt.data.matrices import adjacency, to_torch

RELATIONS = 9
"""The node itself, four quadrants for neighbors in the graph and four for those in the plane."""


def isomap(edge_index: Tensor, num_nodes: int) -> np.ndarray:
    """Embeds the nodes in a plane by Isomap, which is classical scaling of the shortest paths.

    Nodes without a path between them count as one edge further apart than the largest distance.

    Returns:
        float64. Shape: ``(N, 2)``.
    """
    distances = shortest_paths(edge_index, num_nodes).numpy().astype(np.float64)
    reached = distances < 255
    distances[~reached] = distances[reached].max() + 1
    gram = -0.5 * distances**2
    gram -= gram.mean(axis=0)
    gram -= gram.mean(axis=1, keepdims=True)
    if num_nodes <= 3:
        values, vectors = np.linalg.eigh(gram)
        points = np.zeros((num_nodes, 2))
        points[:, :num_nodes] = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :2]
    else:
        start = np.random.default_rng(0).random(num_nodes)
        values, vectors = scipy.sparse.linalg.eigsh(gram, k=2, which="LA", v0=start)
        points = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1]
    points = points.round(5)  # the remaining digits do not depend on the number of threads
    largest = points[abs(points).argmax(axis=0), np.arange(2)]
    return points * np.where(largest < 0, -1, 1)


def latent_relations(edge_index: Tensor, num_nodes: int) -> Tensor:
    r"""Returns the neighbors of each node by relation.

    Neighbors in the graph are joined by an edge. Neighbors in the plane of :func:`isomap` are
    closer than a radius, which is chosen such that nodes have as many neighbors there as in the
    graph on average. The relation of v and u is the quadrant in which u lies as seen from v. The
    entry for v and u is :math:`1 / \sqrt{d_v d_u}`, where :math:`d` is the number of neighbors in
    the graph or in the plane.

    Returns:
        Sparse CSR matrix with row ``v * R + r`` and column ``u * R + r`` for each node v, relation
        r and neighbor u in that relation. Shape: ``(N * R, N * R)``.
    """
    points = isomap(edge_index, num_nodes)
    A = adjacency(edge_index, num_nodes).tocoo()
    own = np.arange(num_nodes) * RELATIONS
    rows, columns, values = [own], [own], [np.ones(num_nodes)]
    for kind, (v, u) in enumerate(((A.row, A.col), _near(points, A.nnz))):
        step = points[u] - points[v]
        relation = 1 + 4 * kind + 2 * (step[:, 0] > 0) + (step[:, 1] > 0)
        degrees = np.bincount(v, minlength=num_nodes)
        rows.append(v * RELATIONS + relation)
        columns.append(u * RELATIONS + relation)
        values.append(1 / np.sqrt(degrees[v] * degrees[u]))
    cells = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    size = num_nodes * RELATIONS
    matrix = scipy.sparse.csr_array(cells, shape=(size, size))
    matrix.sort_indices()
    return to_torch(matrix)


def _near(points: np.ndarray, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the pairs of nodes, in both directions, within the largest radius that has at most
    ``pairs`` of them."""
    from scipy.spatial import cKDTree

    tree = cKDTree(points)
    low, high = 0.0, float(np.ptp(points, axis=0).max() + 1)
    for _ in range(40):
        middle = (low + high) / 2
        if tree.count_neighbors(tree, middle) - len(points) <= pairs:
            low = middle
        else:
            high = middle
    found = tree.query_pairs(low, output_type="ndarray")
    found = found[np.lexsort(found.T)][: pairs // 2]  # more only if nodes are at the same place
    return np.concatenate([found[:, 0], found[:, 1]]), np.concatenate([found[:, 1], found[:, 0]])
