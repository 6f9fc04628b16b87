"""A two-dimensional map of the representations of nodes."""

from typing import Literal, NamedTuple

import numpy as np

from dgt.inspection import Inspection

Method = Literal["tsne", "pca"]
MOST = {"tsne": 3_000, "pca": 5_000}
NAMES = {"tsne": "t-SNE", "pca": "PCA"}
FEWEST = 10  # nodes for t-SNE


class Map(NamedTuple):
    """Some nodes, and their places on the map."""

    method: str
    nodes: np.ndarray
    """Indices of the nodes. Shape: ``(n,)``."""
    places: np.ndarray
    """Shape: ``(n, 2)``."""
    total: int
    """Number of nodes of the graph."""


def project(inside: Inspection, method: Method, most: int) -> Map:
    """Projects the representations of at most ``most`` nodes, drawn at random with a fixed seed."""
    total = inside.data.num_nodes
    if total < FEWEST:
        method = "pca"
    most = min(most, MOST[method])
    nodes = np.arange(total)
    if total > most:
        nodes = np.sort(np.random.default_rng(0).choice(total, most, replace=False))
    z = inside.representations()[nodes].double().numpy()
    return Map(NAMES[method], nodes, _scaled(_places(z, method)), total)


def _places(z: np.ndarray, method: Method) -> np.ndarray:
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if not (z.std(axis=0) > 0).any():
        return np.zeros((len(z), 2))  # all nodes have the same representation
    if method == "tsne":
        perplexity = min(30.0, (len(z) - 1) / 3)
        maker = TSNE(
            init="pca", random_state=0, max_iter=400, angle=0.7, perplexity=perplexity, n_jobs=1
        )
        return maker.fit_transform(z)
    found = PCA(min(2, *z.shape), random_state=0).fit_transform(z)
    return np.hstack([found, np.zeros((len(z), 2 - found.shape[1]))])


def _scaled(places: np.ndarray) -> np.ndarray:
    """Scales the larger side of the map to the range from 0 to 1, so that files stay small."""
    low, high = places.min(axis=0), places.max(axis=0)
    return np.round((places - low) / max(float((high - low).max()), 1e-12), 4)
