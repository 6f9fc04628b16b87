"""Graphs from named arrays, as in an ``.npz`` file or a saved dict of tensors."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.data.direction import DIRECTED
from dgt.data.files.normalization import node_count, normalize
from dgt.data.splits import PARTS
from dgt.data.tensors import plain
from dgt.errors import InputError, nearest
from dgt.system import machine

# Accepted names of each array. The second and third ones are used by published files.
NAMES = {
    "x": ("x", "features", "node_features"),
    "y": ("y", "labels", "node_labels"),
    "edge_index": ("edge_index", "edges"),
    **{f"{part}_mask": (f"{part}_mask", f"{part}_masks") for part in PARTS},
    "num_nodes": ("num_nodes",),
    "node_ids": ("node_ids",),
    "class_names": ("class_names",),
    "feature_names": ("feature_names",),
    "directed": ("directed",),
}
CSR = ("x_indptr", "x_indices", "x_shape", "x_data")


def from_arrays(arrays: Mapping[str, Any], place: str, directed: bool | None = None) -> Data:
    """Builds a graph from NumPy arrays or tensors.

    Args:
        arrays: ``edge_index``, shape ``(2, E)``, or ``edges``, shape ``(E, 2)``; and optionally

            * ``x``, ``features`` or ``node_features``, shape ``(N, F)``; or in sparse (CSR) format
              ``x_indptr``, ``x_indices``, ``x_shape`` and, unless all values are 1, ``x_data``;
            * ``y``, ``labels`` or ``node_labels``, shape ``(N,)``: classes as integers (-1 for
              unlabeled) or strings (empty for unlabeled);
            * ``train_mask``, ``val_mask``, ``test_mask``, shape ``(N,)``, or ``(N, S)`` for S
              splits; or ``train_masks``, ``val_masks``, ``test_masks``, shape ``(S, N)``;
            * ``node_ids``, ``class_names``, ``feature_names``, ``num_nodes``;
            * ``directed``: whether edges lead from their first to their second node.
        place: Name of the source in error messages.
        directed: Whether the edges are directed (default: the array ``directed``, or else not).
    """
    known = {name: key for key, names in NAMES.items() for name in names}
    data, stated = Data(name=place), False
    for name, value in arrays.items():
        if name in CSR:
            continue
        if name not in known:
            raise InputError(f"{place}: unknown array {name!r}; {nearest(name, [*known, *CSR])}")
        key = known[name]
        if key in data:
            twins = " and ".join(repr(n) for n in NAMES[key] if n in arrays)
            raise InputError(f"{place}: {twins} are the same array, expected only one of them")
        if key == "num_nodes":
            data.num_nodes = node_count(value, place)
        elif key == "directed":
            stated = _truth(value, f"{place}: {name}")
        elif key in ("node_ids", "class_names", "feature_names"):
            data[key] = value
        elif key == "y" and getattr(getattr(value, "dtype", None), "kind", None) == "U":
            data.y, data.class_names = _text_labels(value, name, place)
        else:
            data[key] = plain(value, f"{place}: {name}", sparse=key == "x")
            if name in ("edges", "train_masks", "val_masks", "test_masks"):
                data[key] = _transposed(data[key], name, place)
    if any(name in arrays for name in CSR):
        if "x" in data:
            raise InputError(f"{place}: features are both dense and sparse, expected one of them")
        data.x = _csr(arrays, place)
    directed = stated if directed is None else directed
    if directed and data.get("edge_index") is not None:
        data[DIRECTED] = data.edge_index
    return normalize(data, place, directed)


def _truth(value: Any, place: str) -> bool:
    flag = plain(value, place)
    if flag.numel() != 1 or float(flag) not in (0, 1):
        raise InputError(f"{place}: expected true or false, or 1 or 0")
    return bool(flag)


def _transposed(tensor: Tensor, name: str, place: str) -> Tensor:
    wanted = "(E, 2)" if name == "edges" else "(S, N)"
    if tensor.dim() != 2 or (name == "edges" and tensor.size(1) != 2):
        raise InputError(f"{place}: {name}: got shape {tuple(tensor.shape)}, expected {wanted}")
    return tensor.t()


def _text_labels(labels: np.ndarray, name: str, place: str) -> tuple[Tensor, list[str]]:
    if labels.ndim != 1:
        raise InputError(f"{place}: {name}: got shape {tuple(labels.shape)}, expected (N,)")
    names, y = np.unique(labels, return_inverse=True)
    if len(names) and names[0] == "":
        names, y = names[1:], y - 1
    return torch.from_numpy(y), names.tolist()


def _csr(arrays: Mapping[str, Any], place: str) -> Tensor:
    missing = [name for name in CSR[:3] if name not in arrays]
    if missing:
        raise InputError(f"{place}: sparse features without {', '.join(missing)}")
    parts = {name: plain(arrays[name], f"{place}: {name}") for name in CSR if name in arrays}
    for name in CSR[:3]:
        if parts[name].dtype != torch.int64 or parts[name].dim() != 1:
            shown = f"{str(parts[name].dtype).removeprefix('torch.')} {tuple(parts[name].shape)}"
            raise InputError(f"{place}: {name}: got {shown}, expected a row of integers")
    indptr, indices, shape = (parts[name].numpy() for name in CSR[:3])
    values = parts.get("x_data", torch.ones(len(indices))).to(torch.float32).numpy()
    try:
        matrix = scipy.sparse.csr_matrix((values, indices, indptr), shape=tuple(shape.tolist()))
        matrix.check_format(full_check=True)
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(f"{place}: x_*: not a matrix in CSR format: {error}") from None
    machine.require(4 * math.prod(matrix.shape), f"{place}: a dense matrix of shape {matrix.shape}")
    return torch.from_numpy(matrix.toarray())
