"""A folder with a file of nodes and a file of edges, to a graph."""

import logging
from pathlib import Path

import torch
from torch_geometric.data import Data

from dgt.errors import InputError
from dgt.io import columns
from dgt.io.graph import normalise
from dgt.io.tables import Table, read_table

log = logging.getLogger("dgt")


def read_folder(path: Path) -> Data:
    """Reads a user's own graph.

    Args:
        path: A folder with

            * ``edges.csv`` or ``edges.parquet``: columns ``source`` and ``target``;
            * ``nodes.csv`` or ``nodes.parquet``: ``id``, and if wanted ``label`` (empty:
              unlabelled), ``split`` (train, val, test, or empty: in none); every other column is
              a feature: columns of numbers, or one column of lists.

    Ids and labels are text or whole numbers, and are compared as they are written: in a CSV file
    "007" is not 7. Where all ids of a CSV file are plain whole numbers, they are numbers.
    """
    nodes = read_table(_find(path, "nodes"), text=("id", "label", "split"), required=("id",))
    known, node_ids = columns.ids(nodes)
    if not node_ids:
        raise InputError(f"{nodes.name}: empty graph: it has no rows, expected a row a node")
    data = from_nodes(nodes)
    data.name, data.node_ids = str(path), node_ids

    ends = ("source", "target")
    edges = read_table(_find(path, "edges"), text=ends, required=ends)
    unused = [repr(name) for name in edges.columns if name not in ends]
    if unused:
        log.warning("%s: not used: column %s", edges.name, ", ".join(unused))
    data.edge_index = torch.from_numpy(columns.edges(edges, known, Path(nodes.name).name))
    if data.edge_index.size(1) == 0:
        raise InputError(f"{edges.name}: empty graph: it has no rows, expected a row an edge")
    return normalise(data)


def from_nodes(nodes: Table) -> Data:
    """The features, labels and splits of a table of nodes, without edges."""
    data = Data(num_nodes=len(next(iter(nodes.columns.values()))))
    names = [column for column in nodes.columns if column not in ("id", "label", "split")]
    if names:
        data.x = torch.from_numpy(columns.features(nodes, names))
        if data.x.size(1) == len(names):
            data.feature_names = names
    if "label" in nodes.columns:
        y, data.class_names = columns.labels(nodes)
        data.y = torch.from_numpy(y)
    if "split" in nodes.columns:
        for key, mask in columns.splits(nodes).items():
            data[key] = torch.from_numpy(mask)
    return data


def _find(folder: Path, stem: str) -> Path:
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder")
    found = [p for p in (folder / f"{stem}.csv", folder / f"{stem}.parquet") if p.is_file()]
    if len(found) == 2:
        raise InputError(f"{folder}: has {found[0].name} and {found[1].name}, expected one of them")
    if not found:
        raise InputError(f"{folder}: no {stem}.csv or {stem}.parquet in this folder")
    return found[0]
