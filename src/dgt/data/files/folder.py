"""Graphs from a folder with a file of nodes and a file of edges."""

import logging
from pathlib import Path

import torch
from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data.files import columns
from dgt.data.files.frame import Frame, read_frame
from dgt.data.files.normalization import normalize
from dgt.data.recipe.numbers import add_numbers
from dgt.data.recipe.table import add_table
from dgt.errors import InputError

log = logging.getLogger("dgt")


def read_folder(path: Path | str, settings: DataConfig | None = None) -> Data:
    """Reads a graph from CSV or Parquet files.

    Args:
        path: Folder with

            * ``edges.csv`` or ``edges.parquet``: columns ``source`` and ``target``;
            * ``nodes.csv`` or ``nodes.parquet``: column ``id``, optionally ``label`` (empty for
              unlabeled) and ``split`` (train, val, test, or empty for none of them). All other
              columns become features when a model is trained, see :mod:`dgt.data.recipe`. If all
              of them are complete columns of numbers, ``x`` holds these numbers.
        settings: The kinds of columns, where they are set (default: all are inferred).

    Ids and labels are strings or integers and are compared literally: in a CSV file, "007" differs
    from 7. If all ids of a CSV file are integers, they are returned as integers.
    """
    path = Path(path)
    nodes = read_frame(_find(path, "nodes"), required=("id",))
    known, node_ids = columns.ids(nodes)
    if not node_ids:
        raise InputError(f"{nodes.name}: empty graph: no rows, expected one row per node")
    data = from_nodes(nodes, settings)
    data.name, data.node_ids = str(path), node_ids

    ends = ("source", "target")
    edges = read_frame(_find(path, "edges"), required=ends)
    unused = [repr(name) for name in edges.columns if name not in ends]
    if unused:
        log.warning("%s: ignoring column %s", edges.name, ", ".join(unused))
    data.edge_index = torch.from_numpy(columns.edges(edges, known, Path(nodes.name).name))
    if data.edge_index.size(1) == 0:
        raise InputError(f"{edges.name}: empty graph: no rows, expected one row per edge")
    return normalize(data)


def from_nodes(nodes: Frame, settings: DataConfig | None = None) -> Data:
    """Builds a graph without edges from the columns, labels and splits of its nodes."""
    settings = settings or DataConfig()
    data = Data(num_nodes=len(next(iter(nodes.columns.values()))))
    roles: dict[str, str] = {
        name: name for name in ("id", "label", "split") if name in nodes.columns
    }
    rest = {name: cells for name, cells in nodes.columns.items() if name != "id"}
    if len(rest) > len(roles) - 1:
        add_table(data, nodes.name, rest, nodes.place, nodes.typed, roles, settings.kinds())
        add_numbers(data)
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
        raise InputError(
            f"{folder}: found {found[0].name} and {found[1].name}, expected one of them"
        )
    if not found:
        raise InputError(f"{folder}: no {stem}.csv or {stem}.parquet in this folder")
    return found[0]
