"""Graphs from a folder with tables of nodes and of edges."""

import logging
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor
from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data.files import columns
from dgt.data.files.edges import EdgeTable, all_ids, connect, read_edges
from dgt.data.files.frame import Frame, read_frame
from dgt.data.files.names import Wanted
from dgt.data.files.normalization import normalize
from dgt.data.recipe.numbers import add_numbers
from dgt.data.recipe.table import add_table, leave_out_labels
from dgt.errors import InputError

log = logging.getLogger("dgt")

_PART = re.compile(r"(nodes|edges)(?:\.(.+?))?\.part-?\d+\.parquet")
_TABLE = re.compile(r"(nodes|edges)(?:\.(.+))?\.(csv|parquet|mtx)")


def read_folder(path: Path | str, settings: DataConfig | None = None, labeled: bool = True) -> Data:
    """Reads a graph from CSV or Parquet files.

    Args:
        path: Folder with

            * ``edges.csv`` or ``edges.parquet``: columns ``source`` and ``target``, optionally
              ``weight``; or ``edges.mtx``, an adjacency matrix of nodes 1, 2, ...; or several
              edge tables, such as ``edges.follows.csv`` and ``edges.pays.csv``;
            * ``nodes.csv`` or ``nodes.parquet``: column ``id``, optionally ``label`` (empty for
              unlabeled) and ``split`` (train, val, test, or empty for none of them). All other
              columns become features when a model is trained, see :mod:`dgt.data.recipe`. If all
              of them are complete columns of numbers, ``x`` holds these numbers. Without this
              file, the nodes are those of the edges.

            A Parquet file may be a folder of parts, or files such as ``nodes.part-0.parquet``.
        settings: The names and kinds of columns, where they are set (default: all are inferred).
        labeled: Whether the columns of labels and splits must be there if they are set.

    Ids and labels are strings or integers and are compared literally: in a CSV file, "007" differs
    from 7. If all ids of a CSV file are integers, they are returned as integers.
    """
    path, settings = Path(path), settings or DataConfig()
    found = find_tables(path)
    edge_files = {name or "edges": file for (stem, name), file in found.items() if stem == "edges"}
    if ("nodes", "") not in found:
        return _without_nodes(path, read_edges(edge_files, settings), settings)
    nodes = read_frame(found["nodes", ""], _wanted(settings, labeled))
    tables = read_edges(edge_files, settings)
    return assemble(str(path), nodes, tables, settings, settings.directed, labeled)


def assemble(
    name: str,
    nodes: Frame,
    tables: list[EdgeTable],
    settings: DataConfig,
    directed: bool | None,
    labeled: bool = True,
) -> Data:
    """Builds a graph from tables.

    Args:
        name: Name of the graph.
        nodes: The columns of the nodes.
        tables: The edge tables.
        settings: The names and kinds of columns, where they are set.
        directed: Whether edges lead from source to target.
        labeled: See :func:`read_folder`.
    """
    roles = _wanted(settings, labeled).find(nodes.name, list(nodes.columns))
    known, node_ids = columns.ids(nodes, roles["id"])
    if not node_ids:
        raise InputError(f"{nodes.name}: empty graph: no rows, expected one row per node")
    data = from_nodes(nodes, roles, settings)
    data.name, data.node_ids = name, node_ids
    if settings.unknown_nodes == "add":
        known = _with_new_nodes(data, known, all_ids(tables))
    nodes_name, unknown = Path(nodes.name).name, settings.unknown_nodes
    connect(data, tables, known, nodes_name, unknown, directed)
    return _read_with(settings, normalize(data, directed=bool(directed)))


def _read_with(settings: DataConfig, data: Data) -> Data:
    """Keeps the settings that a graph was read with, for errors about those that come too late."""
    data.read_with = settings
    return data


def _wanted(settings: DataConfig, labeled: bool) -> Wanted:
    chosen = {"id": settings.id, "label": settings.label, "split": settings.split_column}
    return Wanted(chosen, ("id",), () if labeled else ("label", "split"))


def find_tables(folder: Path) -> dict[tuple[str, str], Path]:
    """Returns the tables of a folder, by "nodes" or "edges" and the name of an edge table.

    Files and folders that are not read are named in a warning, except hidden ones.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    found: dict[tuple[str, str], Path] = {}
    others = []
    for path in sorted(folder.iterdir()):
        match = _PART.fullmatch(path.name) or _TABLE.fullmatch(path.name)
        if match is None or (match[1] == "nodes" and (match[2] or path.suffix == ".mtx")):
            if not path.name.startswith("."):
                others.append(path.name)
            continue
        key = (match[1], match[2] or "")
        if key in found and not (_is_part(path) and _is_part(found[key])):
            raise InputError(
                f"{folder}: found {found[key].name} and {path.name}, expected one of them"
            )
        found.setdefault(key, path)
    if others and found:
        log.warning("%s: ignoring %s", folder, _listed(others))
    if not any(stem == "edges" for stem, _ in found):
        also = "" if found else "no nodes.csv or nodes.parquet in this folder, and "
        there = f"; found {_listed(others)}" if others else ""
        raise InputError(f"{folder}: {also}no edges.csv or edges.parquet in this folder{there}")
    return found


def _is_part(path: Path) -> bool:
    return _PART.fullmatch(path.name) is not None


def _listed(names: list[str]) -> str:
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if names[10:] else "")


def from_nodes(nodes: Frame, found: dict[str, str], settings: DataConfig | None = None) -> Data:
    """Builds a graph without edges from the columns, labels and splits of its nodes.

    Args:
        nodes: The table.
        found: The columns of the ids, labels and splits.
        settings: The kinds of columns, where they are set.
    """
    settings = settings or DataConfig()
    data = Data(num_nodes=len(next(iter(nodes.columns.values()))))
    roles = {name: role for role, name in found.items()}
    rest = {name: cells for name, cells in nodes.columns.items() if name != found["id"]}
    if any(name not in roles for name in rest):
        add_table(data, nodes.name, rest, nodes.place, nodes.typed, roles, settings.kinds())
        leave_out_labels(data.table)
        add_numbers(data)
    if "label" in found:
        y, data.class_names = columns.labels(nodes, found["label"])
        data.y = torch.from_numpy(y)
    if "split" in found:
        for key, mask in columns.splits(nodes, found["split"]).items():
            data[key] = torch.from_numpy(mask)
    return data


def _without_nodes(path: Path, tables: list[EdgeTable], settings: DataConfig) -> Data:
    """Builds a graph of the nodes that edges name."""
    known = all_ids(tables)
    data = Data(num_nodes=len(known), name=str(path), node_ids=columns.plain_ids(known))
    connect(data, tables, known, "the edges", "error", settings.directed)
    return _read_with(settings, normalize(data, directed=bool(settings.directed)))


def _with_new_nodes(data: Data, known: pa.Array, ids: pa.Array) -> pa.Array:
    """Adds nodes without features, label and split for unknown ids."""
    new = ids.filter(pc.invert(pc.is_in(ids, value_set=known)))
    if not len(new):
        return known
    log.warning("%s: adding %d nodes that only the edges name", data.name, len(new))
    if data.get("x") is not None:
        del data.x
        data.feature_names = None
    for key, value in data.to_dict().items():
        if isinstance(value, Tensor):
            empty = {torch.bool: False}.get(value.dtype, -1)
            data[key] = torch.cat(
                [value, torch.full((len(new), *value.shape[1:]), empty, dtype=value.dtype)]
            )
    data.node_ids = [*data.node_ids, *columns.plain_ids(new)]
    data.num_nodes = len(data.node_ids)
    return pa.concat_arrays([known, new])
