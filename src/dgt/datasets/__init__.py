"""A graph by name or path, to `Data`: the benchmarks, synthetic graphs, a user's own files."""

import re
from pathlib import Path

from torch_geometric.data import Data

from dgt import io
from dgt.datasets.published import NAMES, read_published
from dgt.datasets.synthetic import PREFIX, parse, synthetic
from dgt.errors import InputError, nearest

__all__ = ["NAMES", "is_name", "load", "short_name"]

_BUILT_IN = Path(__file__).parent.parent / "data" / "cora.npz"


def load(graph: str, splits: str = "auto") -> Data:
    """Loads a graph.

    Args:
        graph: A benchmark's name; ``synthetic:arxiv`` or ``synthetic:nodes=1e6,edges=1e7`` for a
            graph made up, see :func:`dgt.datasets.synthetic.parse`; or the path of a folder, an
            ``.npz`` or a ``.pt`` file. A folder that is called like a benchmark is meant when
            written as a path: ``./cora``.
        splits: With ``"published"``, ``cora`` is read from the files of Planetoid, to whose order
            of nodes the published splits refer; else it is the built-in graph, which needs no
            network and has no splits of its own.
    """
    if graph == "cora" and splits != "published":
        data = io.read_npz(_BUILT_IN)
    elif graph in NAMES:
        data = read_published(graph)
    elif graph.startswith(PREFIX):
        data = synthetic(parse(graph))
    elif Path(graph).exists():
        return io.read(graph)
    else:
        raise InputError(
            f"{graph}: no such file or folder, and no benchmark's name; {nearest(graph, NAMES)}"
        )
    data.name = graph
    return data


def is_name(graph: str) -> bool:
    """Whether a graph is meant by name, not by a path."""
    return graph in NAMES or graph.startswith(PREFIX)


def short_name(graph: str) -> str:
    """What folders and files made for a graph are called after it."""
    return re.sub(r"[:,]+", "-", graph) if is_name(graph) else Path(graph).stem
