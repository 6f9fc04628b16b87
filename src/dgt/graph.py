"""A graph's edges as sparse matrices."""

import warnings

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from dgt.errors import InputError


def adjacency(edge_index: Tensor, num_nodes: int) -> scipy.sparse.csr_array:
    """The adjacency matrix A [N, N] of 0 and 1: symmetric, without self-loops, columns sorted."""
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise InputError(f"edge_index: expected shape [2, E], got {list(edge_index.shape)}")
    source, target = edge_index.cpu().numpy()
    if source.size:
        low, high = min(source.min(), target.min()), max(source.max(), target.max())
        if low < 0 or high >= num_nodes:
            raise InputError(
                f"edge_index: node {low if low < 0 else high} is not one of the {num_nodes} nodes"
            )
    other = source != target
    source, target = source[other], target[other]
    ones = np.ones(2 * len(source))
    both = (np.concatenate([source, target]), np.concatenate([target, source]))
    matrix = scipy.sparse.csr_array((ones, both), shape=(num_nodes, num_nodes))
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix


def to_torch(matrix: scipy.sparse.csr_array) -> Tensor:
    """A SciPy CSR matrix as a torch sparse CSR tensor of float32."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(np.int64)),
            torch.from_numpy(matrix.indices.astype(np.int64)),
            torch.from_numpy(matrix.data.astype(np.float32)),
            matrix.shape,
            check_invariants=True,
        )
