"""Computes the columns of one or several positional encodings."""

from collections.abc import Sequence

import numpy as np
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import ENCODINGS, EncodingChoice, EncodingConfig
from dgt.data.direction import is_directed, require_direction
from dgt.data.matrices import to_torch
from dgt.encodings.custom import check_columns
from dgt.encodings.encoding import CarriesOver, Encoding
from dgt.storage.segments import CachedRows
from dgt.system.plugins import call

# Above this fraction of nonzero values, the first layer is faster with dense columns.
DENSE_SHARE = 0.1


def records(settings: EncodingConfig) -> list[Encoding]:
    """Returns the records of the encodings in use."""
    return [ENCODINGS.record(choice) for choice in settings.encodings]


def make_columns(
    data: Data, settings: EncodingConfig, anchors: Tensor | None = None
) -> tuple[Tensor | None, tuple[int, ...]]:
    """Computes the columns of all encodings in use, side by side.

    Args:
        data: The graph.
        settings: The settings.
        anchors: Anchors of encodings with one column per anchor, with -1 for an anchor that is not
            in this graph (default: they are chosen).

    Returns:
        The columns, float32 ``(N, N')``, in sparse (CSR) format if that is faster, or None without
        an encoding; and the number of columns of each encoding.
    """
    require_directed(data, settings)
    parts = [_columns(choice, data, settings, anchors) for choice in settings.encodings]
    found = [part for part in parts if part is not None]
    widths = tuple(0 if part is None else part.size(1) for part in parts)
    if not found:
        return None, widths
    columns = found[0] if len(found) == 1 else beside(found)
    if columns.layout != torch.sparse_csr:
        return columns, widths
    dense = columns.values().numel() > DENSE_SHARE * columns.numel()
    return columns.to_dense() if dense else columns, widths


def beside(parts: Sequence[Tensor]) -> Tensor:
    """Joins columns to one matrix, sparse (CSR) unless all of them are dense."""
    if all(part.layout == torch.strided for part in parts):
        return torch.cat(list(parts), dim=1)
    return to_torch(scipy.sparse.csr_array(scipy.sparse.hstack(list(map(_csr, parts)), "csr")))


def require_directed(data: Data, settings: EncodingConfig) -> None:
    """Raises an error if an encoding needs directed edges and the graph has none."""
    for choice in settings.encodings:
        if ENCODINGS.record(choice).direction == "needed":
            require_direction(data, f"encoding {ENCODINGS.name(choice)}")


def reads_direction(data: Data, settings: EncodingConfig) -> bool:
    """Returns whether the columns depend on the direction of the edges."""
    return is_directed(data) and any(each.direction != "unused" for each in records(settings))


def carries_over(settings: EncodingConfig) -> CarriesOver:
    """Returns what another graph must share so that a trained model can use all encodings."""
    strictness: tuple[CarriesOver, ...] = ("edges", "anchors", "always")
    return min((each.carries_over for each in records(settings)), key=strictness.index)


def encoding_rows(data: Data, settings: EncodingConfig) -> list[CachedRows]:
    """Returns the rows of expensive encodings, which ``dgt prepare`` caches."""
    require_directed(data, settings)
    made = (each.rows(data, settings) for each in records(settings) if each.rows is not None)
    return [rows for each in made for rows in each]


def _columns(
    choice: EncodingChoice, data: Data, settings: EncodingConfig, anchors: Tensor | None
) -> Tensor | None:
    record, title = ENCODINGS.record(choice), ENCODINGS.name(choice)
    if title in ENCODINGS.built_in:
        return record.columns(data, settings, anchors)
    place = f"encoding {title}"
    found = call(place, record.columns, data, settings, anchors)
    return None if found is None else check_columns(place, found, data.num_nodes)


def _csr(columns: Tensor) -> scipy.sparse.csr_array:
    if columns.layout == torch.strided:
        return scipy.sparse.csr_array(columns.numpy())
    if columns.layout != torch.sparse_csr:
        columns = columns.to_sparse_csr()
    parts = columns.values(), columns.col_indices(), columns.crow_indices()
    arrays = tuple(np.asarray(part) for part in parts)
    return scipy.sparse.csr_array(arrays, tuple(columns.shape))
