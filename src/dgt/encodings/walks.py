"""The walks encoding: the role of a node, by how often random walks return to it."""

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import EncodingConfig
from dgt.data.edge_tables import edge_weights
from dgt.data.matrices import adjacency
from dgt.encodings.encoding import Encoding
from dgt.storage import segments
from dgt.storage.files import cache_folder
from dgt.storage.fingerprint import fingerprint
from dgt.system.progress import progress_bar

STEPS = 16
BLOCK = 256  # nodes of the exact form at a time
# Up to this number of multiplications, which take some seconds, the columns are exact.
EXACT_PRODUCTS = 2e10
PROJECTIONS = 256
GROUP = 16  # projections at a time
TITLE = "Following walks"


def walk_columns(A: scipy.sparse.csr_array, exact: bool | None = None) -> Tensor:
    r"""Computes the square roots of the probabilities that a random walk is back at its start after
    2, 3, ..., 16 steps, the diagonals of :math:`(\mathbf{D}^{-1} \mathbf{A})^k`. A node without
    edges has zeros. The columns mean the same on every graph.

    The symmetric matrix :math:`\mathbf{S} = \mathbf{D}^{-1/2} \mathbf{A} \mathbf{D}^{-1/2}` has the
    same diagonals, and that of :math:`\mathbf{S}^{a+b}` holds the products of the rows of
    :math:`\mathbf{S}^a` and :math:`\mathbf{S}^b`, so that eight powers suffice. In a large graph,
    these rows are projected onto 256 random directions, always the same ones, which preserves their
    products up to a standard error of :math:`\sqrt{2 / 256}`, about 9 percent, for an even number
    of steps, and half of that after the root.

    Args:
        A: Symmetric adjacency matrix without self-loops, possibly with weights. Shape: ``(N, N)``.
        exact: Whether to compute them exactly (default: up to 2e10 multiplications).

    Returns:
        float32 ``(N, 15)``.
    """
    N, degrees = A.shape[0], A.sum(axis=1)
    if exact is None:
        exact = STEPS / 2 * N * A.nnz <= EXACT_PRODUCTS
    roots = scipy.sparse.diags_array(1 / np.sqrt(np.where(degrees > 0, degrees, 1)))
    S = scipy.sparse.csr_array(roots @ A @ roots)
    found = np.zeros((N, STEPS - 1))
    if exact:
        with progress_bar(TITLE, N) as advance:
            for start in range(0, N, BLOCK):
                nodes = np.arange(start, min(start + BLOCK, N))
                unit = np.zeros((N, len(nodes)))
                unit[nodes, nodes - start] = 1
                found[nodes] = _products(S, unit, "ij,ij->j")
                advance(len(nodes))
    else:
        S, random = S.astype(np.float32), np.random.default_rng(0)
        with progress_bar(TITLE, PROJECTIONS) as advance:
            for _ in range(0, PROJECTIONS, GROUP):
                signs = random.integers(0, 2, (N, GROUP), dtype=np.int8) * np.float32(2) - 1
                found += _products(S, signs, "ij,ij->i") / PROJECTIONS
                advance(GROUP)
    return torch.from_numpy(np.sqrt(np.maximum(found, 0)).astype(np.float32))


def _products(S: scipy.sparse.csr_array, start: np.ndarray, rule: str) -> np.ndarray:
    """Returns products of powers of S times ``start``, one column per number of steps."""
    powers = [start]
    for _ in range(STEPS // 2):
        powers.append(S @ powers[-1])
    pairs = [(k // 2, k - k // 2) for k in range(2, STEPS + 1)]
    return np.stack([np.einsum(rule, powers[a], powers[b]) for a, b in pairs], axis=1)


def _cached(data: Data, settings: EncodingConfig, anchors: Tensor | None) -> Tensor:
    """Returns the columns from the cache, or computes them."""
    weights, shape = edge_weights(data), (data.num_nodes, STEPS - 1)
    name = fingerprint([data.edge_index, weights], ("walks", *shape, PROJECTIONS))

    def make() -> np.ndarray:
        return walk_columns(adjacency(data.edge_index, data.num_nodes, weights)).numpy()

    path = cache_folder() / "encodings" / f"{name}.npy"
    kept = segments.mapped(path, shape, np.float32, lambda: [make()])
    return torch.from_numpy(make() if kept is None else kept)


WALKS = Encoding(columns=_cached, carries_over="always")
