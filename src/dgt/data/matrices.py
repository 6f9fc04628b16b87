"""The edges and features of a graph as matrices."""

import warnings
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.tensors import plain
from dgt.errors import InputError

# Up to this fraction of nonzero values, products with a sparse matrix are faster.
SPARSE_DENSITY = 0.1


def require_graph(data: object) -> None:
    """Raises an error unless ``data`` is a PyG ``Data`` with a number of nodes and with edges."""
    if not isinstance(data, Data):
        raise InputError(f"data: got {type(data).__name__}, expected a PyG Data")
    if data.edge_index is None:
        raise InputError("edge_index is missing")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        try:
            num_nodes = data.num_nodes
        except UserWarning:  # the largest index in edge_index would miss isolated nodes
            raise InputError("data: unknown number of nodes, expected x or num_nodes") from None
    _ends(data.edge_index, num_nodes)


def adjacency(
    edge_index: Tensor, num_nodes: int, weights: Tensor | None = None
) -> scipy.sparse.csr_array:
    """Returns the symmetric adjacency matrix, shape ``(N, N)``, without self-loops.

    Column indices are sorted.

    Args:
        edge_index: Edges. Shape: ``(2, E)``.
        num_nodes: Number of nodes N.
        weights: Weight of each edge (default: all values are 1). The edges must be in both
            directions, without duplicates and self-loops. Shape: ``(E,)``.
    """
    source, target = _ends(edge_index, num_nodes)
    if weights is not None:
        values = weights.cpu().numpy()
        matrix = scipy.sparse.csr_array((values, (source, target)), shape=(num_nodes, num_nodes))
        matrix.sort_indices()
        return matrix
    loops = source == target
    if loops.any():
        source, target = source[~loops], target[~loops]
    one_way = scipy.sparse.csr_array(
        (np.ones(len(source)), (source, target)), shape=(num_nodes, num_nodes)
    )
    one_way.sort_indices()
    opposite = one_way.T.tocsr()
    matrix = one_way if _same_places(one_way, opposite) else one_way + opposite
    matrix.sort_indices()
    matrix.data[:] = 1
    return matrix


def _same_places(matrix: scipy.sparse.csr_array, other: scipy.sparse.csr_array) -> bool:
    """Returns whether two matrices with sorted indices have nonzero values at the same places."""
    return np.array_equal(matrix.indptr, other.indptr) and np.array_equal(
        matrix.indices, other.indices
    )


def _ends(edge_index: Tensor, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Checks edges, and returns the nodes that they start and end at, int64 ``(E,)`` each."""
    edges = plain(edge_index, "edge_index")
    if edges.dim() != 2 or edges.size(0) != 2:
        raise InputError(f"edge_index: got shape {tuple(edges.shape)}, expected (2, E)")
    if edges.dtype != torch.int64:
        raise InputError(f"edge_index: got values of type {edges.dtype}, expected integers")
    if edges.numel():
        low, high = (int(end) for end in edges.aminmax())
        if low < 0 or high >= num_nodes:
            raise InputError(
                f"edge_index: got node {low if low < 0 else high}, expected 0 to {num_nodes - 1}"
            )
    source, target = edges.numpy()
    return source, target


def features(data: Data) -> np.ndarray | scipy.sparse.csr_array:
    """Returns the features, shape ``(N, F)``, as a sparse matrix if few of them are nonzero."""
    x = data.x
    if x is None and data.get("table") is not None:
        raise InputError(
            f"{data.get('name', 'graph')}: x: the columns of the table are not features yet; "
            "Recipe.fit(data, DataConfig()).apply(data) in dgt.data.recipe makes them"
        )
    if x is None:
        return np.zeros((data.num_nodes, 0), dtype=np.float32)
    if not isinstance(x, Tensor) or x.is_nested or x.layout == torch.strided:
        x = plain(x, "x")
    if x.dim() != 2 or x.size(0) != data.num_nodes:
        raise InputError(f"x: got shape {tuple(x.shape)}, expected ({data.num_nodes}, F)")
    x = x.detach().cpu()
    if x.layout == torch.strided:
        matrix = x.numpy()
        if np.count_nonzero(matrix) <= SPARSE_DENSITY * matrix.size:
            matrix = scipy.sparse.csr_array(matrix)
    else:
        x = x.to_sparse_coo().coalesce()
        matrix = scipy.sparse.csr_array((x.values().numpy(), x.indices().numpy()), shape=x.shape)
        if matrix.nnz > SPARSE_DENSITY * x.size(0) * x.size(1):
            matrix = matrix.toarray()
    if not np.isfinite(matrix.data if scipy.sparse.issparse(matrix) else matrix).all():
        raise InputError(f"x: got {_not_finite(matrix)}, expected finite numbers")
    return matrix


def scaled_rows(matrix: Any, scaling: str) -> Any:
    """Divides each row of a dense or sparse matrix by its norm; rows of zeros stay as they are.

    Args:
        matrix: NumPy array or SciPy sparse matrix.
        scaling: ``"sum"`` for the L1 norm, ``"l2"`` for the L2 norm, ``"none"`` for no scaling.
    """
    if scaling == "none":
        return matrix
    sizes = abs(matrix).sum(axis=1) if scaling == "sum" else np.sqrt((matrix**2).sum(axis=1))
    sizes[sizes == 0] = 1
    if not scipy.sparse.issparse(matrix):
        return matrix / sizes[:, None]
    values = matrix.data / np.repeat(sizes, np.diff(matrix.indptr))
    return scipy.sparse.csr_array((values, matrix.indices, matrix.indptr), matrix.shape)


def _not_finite(matrix: np.ndarray | scipy.sparse.csr_array) -> str:
    """Describes the first value that is not finite."""
    cells = scipy.sparse.coo_array(matrix)
    at = np.flatnonzero(~np.isfinite(cells.data))[0]
    return f"{cells.data[at]} in row {cells.row[at]}, column {cells.col[at]}"


def to_torch(matrix: scipy.sparse.csr_array) -> Tensor:
    """Converts a SciPy CSR matrix to a torch sparse CSR tensor of type float32."""
    if not matrix.has_sorted_indices:  # products are not sorted
        matrix = matrix.sorted_indices()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64, copy=False)),
            torch.from_numpy(matrix.indices.astype(np.int64, copy=False)),
            torch.from_numpy(matrix.data.astype(np.float32, copy=False)),
            matrix.shape,
            check_invariants=True,
        )
