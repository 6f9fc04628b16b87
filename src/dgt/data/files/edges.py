"""Reads the edge tables of a folder."""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data.direction import DIRECTED, DIRECTED_WEIGHTS
from dgt.data.edge_tables import joined_rows
from dgt.data.files import columns
from dgt.data.files.frame import Frame, read_frame
from dgt.data.files.names import Wanted
from dgt.errors import InputError

log = logging.getLogger("dgt")

ROLES = ("source", "target", "weight")


class EdgeTable(NamedTuple):
    """The columns of an edge table."""

    name: str
    """Name of the table: "follows" for the file edges.follows.csv, else "edges"."""
    frame: Frame
    roles: dict[str, str]
    """Columns of source, target and possibly weight."""

    def ends(self) -> tuple[pa.Array, pa.Array]:
        """Returns the ids of both nodes of each edge as strings."""
        source, target = (
            columns.present_text(self.frame, self.roles[role], "the id of a node")
            for role in ROLES[:2]
        )
        return source, target


def read_edges(paths: dict[str, Path], settings: DataConfig) -> list[EdgeTable]:
    """Reads edge tables, given the file of each name."""
    tables = []
    for name, path in paths.items():
        wanted = Wanted({role: getattr(settings, role) for role in ROLES}, ROLES[:2])
        tables.append(edge_table(name, read_frame(path, wanted), settings))
    return tables


def edge_table(name: str, frame: Frame, settings: DataConfig) -> EdgeTable:
    """Finds the columns of an edge table, and names those that are not used in a warning."""
    wanted = Wanted({role: getattr(settings, role) for role in ROLES}, ROLES[:2])
    roles = wanted.find(frame.name, list(frame.columns))
    unused = [repr(column) for column in frame.columns if column not in roles.values()]
    if unused:
        hint = "" if "weight" in roles else "; --weight NAME uses one as the weights of edges"
        log.warning("%s: ignoring column %s%s", frame.name, ", ".join(unused), hint)
    return EdgeTable(name, frame, roles)


def all_ids(tables: Iterable[EdgeTable]) -> pa.Array:
    """Returns the distinct ids of the nodes of some edge tables, sorted as text."""
    ends = [end for table in tables for end in table.ends()]
    distinct = pa.chunked_array(ends).unique()
    return distinct.take(pc.sort_indices(distinct))


def connect(
    data: Data,
    tables: list[EdgeTable],
    known: pa.Array,
    nodes: str,
    unknown: str,
    directed: bool | None = None,
) -> None:
    """Sets the edges of a graph and, if there are any, their weights and edge tables.

    Args:
        data: The graph.
        tables: Its edge tables.
        known: The ids of its nodes.
        nodes: Name of the node table for error messages.
        unknown: ``"drop"`` to leave out edges to other nodes, otherwise an error.
        directed: Whether edges lead from source to target.
    """
    made = [_edges(table, known, nodes, unknown) for table in tables]
    if not any(edges.size for edges, _ in made):
        place = tables[0].frame.name if len(tables) == 1 else data.name
        raise InputError(f"{place}: empty graph: no rows, expected one row per edge")
    data.edge_index = torch.from_numpy(np.concatenate([edges for edges, _ in made], axis=1))
    if directed:
        data[DIRECTED] = data.edge_index
    if len(tables) == 1 and made[0][1] is None:
        return
    data.edge_index, data.edge_weights = _joined(made, len(known), False)
    if directed:
        data[DIRECTED], data[DIRECTED_WEIGHTS] = _joined(made, len(known), True)
    data.edge_names = [table.name for table in tables]


def _joined(
    tables: list[tuple[np.ndarray, np.ndarray | None]], num_nodes: int, directed: bool
) -> tuple[Tensor, Tensor]:
    """Returns the edges of all tables, and their weights in each table. An edge that is in several
    tables is listed as often."""
    joined = [joined_rows(edges, weights, num_nodes, directed) for edges, weights in tables]
    edges = np.concatenate([edges for edges, _ in joined], axis=1)
    weights = np.zeros((edges.shape[1], len(tables)))
    start = 0
    for table, (own, sums) in enumerate(joined):
        weights[start : start + own.shape[1], table] = sums
        start += own.shape[1]
    return torch.from_numpy(edges), torch.from_numpy(weights)


def _edges(
    table: EdgeTable, known: pa.Array, nodes: str, unknown: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Returns the nodes of each edge, int64 ``(2, E)``, and the weights, ``(E,)``."""
    ends, index = table.ends(), []
    for role, cells in zip(ROLES, ends, strict=False):
        found = pc.index_in(cells, value_set=known)
        if found.null_count and unknown != "drop":
            row = pc.index(pc.is_null(found), True).as_py()
            expected = f"an id in {nodes}; to leave such edges out, use --unknown-nodes drop"
            raise table.frame.error(row, table.roles[role], cells[row].as_py(), expected)
        index.append(pc.fill_null(found, -1).to_numpy(zero_copy_only=False).astype(np.int64))
    edges = np.stack(index)
    weights = _weights(table)
    inside = (edges >= 0).all(axis=0)
    if not inside.all():
        outside = int((~inside).sum())
        log.warning(
            "%s: leaving out %d edges to nodes that are not in %s", table.frame.name, outside, nodes
        )
        edges, weights = edges[:, inside], None if weights is None else weights[inside]
    return edges, weights


def _weights(table: EdgeTable) -> np.ndarray | None:
    if "weight" not in table.roles:
        return None
    name, expected = table.roles["weight"], "a positive number"
    cells = table.frame.columns[name].combine_chunks()
    try:
        found = pc.fill_null(cells.cast(pa.float64(), safe=False), np.nan)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        found = pa.array([columns.as_number(cell.as_py()) for cell in cells], pa.float64())
    weights = found.to_numpy(zero_copy_only=False)
    bad = ~((weights > 0) & (weights <= 1e15))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise table.frame.error(row, name, cells[row].as_py(), expected)
    return weights
