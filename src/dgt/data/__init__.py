"""Graphs as PyG ``Data``: benchmarks, synthetic graphs and the user's own files.

:func:`load` reads any of them. ``benchmarks`` and ``large_benchmarks`` read the published graphs,
``synthetic`` generates graphs of any size, ``files`` reads and writes files and checks graphs,
``splits`` chooses the train, val and test nodes, and ``matrices`` turns edges and features into
matrices. Node sequences and positional encodings are computed elsewhere, in :mod:`dgt.sequences`
and :mod:`dgt.encodings`.
"""

import os
import re
from pathlib import Path

from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data import files
from dgt.data.benchmarks import BENCHMARKS, NAMES, read_benchmark
from dgt.data.direction import is_directed
from dgt.data.synthetic import PREFIX, parse, synthetic
from dgt.errors import InputError, nearest

__all__ = ["NAMES", "graph_files", "is_name", "load", "short_name"]

_BUILT_IN = Path(__file__).parent / "cora.npz"


def load(
    graph: str,
    splits: str = "auto",
    settings: DataConfig | None = None,
    *,
    labeled: bool = True,
) -> Data:
    """Loads a graph.

    Args:
        graph: Name of a benchmark; a synthetic graph such as ``synthetic:arxiv`` or
            ``synthetic:nodes=1e6,edges=1e7``, see :func:`dgt.data.synthetic.parse`; or the path of
            a folder or of an ``.npz``, ``.pt``, ``.graphml``, ``.gexf`` or ``.mtx`` file. Names of
            benchmarks take precedence over folders; write ``./cora`` for a folder called ``cora``.
        splits: With ``"published"``, ``cora`` is read from the files of Planetoid, whose order of
            nodes the published splits refer to. Otherwise it is the built-in graph, which needs no
            network and has no splits.
        settings: How to read a folder of tables (default: names and kinds of columns are inferred).
        labeled: Whether a folder must have the columns of labels and splits that are set. To
            predict, it need not.
    """
    if not isinstance(graph, str | os.PathLike) or graph == "":
        raise InputError(f"graph: got {graph!r}, expected a name or a path")
    graph = os.fspath(graph)
    if graph == "cora" and splits != "published":
        data = files.read_npz(_BUILT_IN)
    elif graph in NAMES:
        data = read_benchmark(graph)
    elif graph.startswith(PREFIX):
        data = synthetic(parse(graph))
    elif _exists(graph):
        return files.read(graph, settings, labeled)
    else:
        raise InputError(f"{graph}: no such file, folder or benchmark; {nearest(graph, NAMES)}")
    data.name = graph
    if graph in NAMES:
        data.metric = BENCHMARKS[graph].metric
    if settings is not None and settings.directed and not is_directed(data):
        raise InputError(f"{graph}: --directed: the direction of its edges is not known")
    return data


def _exists(graph: str) -> bool:
    try:
        return Path(graph).exists()
    except (OSError, ValueError):  # too long, or with a zero byte
        return False


def is_name(graph: str) -> bool:
    """Returns whether a graph is given by name, not by path."""
    return graph in NAMES or graph.startswith(PREFIX)


def graph_files(graph: str) -> list[Path]:
    """Returns the user's files that a graph is read from. A graph given by name has none."""
    if is_name(graph):
        return []
    path = Path(graph)
    if not path.is_dir():
        return [path]
    names = [f"{stem}{name}" for stem in ("nodes", "edges") for name in (".csv", "*.parquet")]
    names += ["edges.*.csv", "edges.mtx", "edges.*.mtx"]
    return sorted({file for name in names for file in path.glob(name)})


def short_name(graph: str) -> str:
    """Returns a name for the files and folders that belong to a graph."""
    return re.sub(r"[:,]+", "-", graph) if is_name(graph) else Path(graph).stem
