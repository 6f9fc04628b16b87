"""Graphs in GraphML and GEXF files, read by NetworkX."""

import logging
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa
from torch_geometric.data import Data

from dgt.config import DataConfig
from dgt.data.files.edges import edge_table
from dgt.data.files.folder import assemble
from dgt.data.files.frame import Frame
from dgt.errors import InputError, first_line
from dgt.system import machine

log = logging.getLogger("dgt")

FORMATS = {".graphml": "GraphML", ".gexf": "GEXF"}
# Memory of NetworkX's graph and of the XML tree, as a multiple of the file's size.
MEMORY_RATIO = 12
# What GEXF files say about how to draw nodes and edges, and its own ids of edges.
DRAWING = ("viz",)
EDGE_NAMES = ("id", "label", *DRAWING)
BLOCK = 2**20
# Attributes of XML elements.
NEEDED = {"node": ("id",), "edge": ("source", "target")}


def read_xml(path: Path | str, settings: DataConfig | None = None) -> Data:
    """Reads a GraphML or GEXF file.

    Attributes of nodes are treated like the columns of a node table, and those of edges like the
    columns of an edge table, see :func:`~dgt.data.files.folder.read_folder`. The file says whether
    its edges are directed. The label of a GEXF node, which is its name in drawings, is only used as
    its class if nodes share labels. Entities and other declarations of document types are refused.

    Args:
        path: A file that ends with ``.graphml`` or ``.gexf``.
        settings: The names and kinds of columns, where they are set (default: all are inferred).
    """
    path, settings = Path(path), settings or DataConfig()
    if settings.id is not None:
        kind = FORMATS[path.suffix]
        raise InputError(f"{path}: --id: the nodes of a {kind} file have ids of their own")
    graph = _read(path)
    names = list(graph.nodes)
    if not names:
        raise InputError(f"{path}: empty graph: no nodes")
    found = _attributes(graph.nodes.values(), DRAWING)
    if path.suffix == ".gexf":
        _without_names(path, found, settings.label)
    nodes = _frame(path, {"id": names}, found, lambda row: f"node {names[row]!r}")
    ends = list(graph.edges())
    edges = _frame(
        path,
        {"source": [u for u, _ in ends], "target": [v for _, v in ends]},
        _attributes((values for *_, values in graph.edges(data=True)), EDGE_NAMES),
        lambda row: f"edge {ends[row][0]!r} to {ends[row][1]!r}",
    )
    table = edge_table("edges", edges, settings)
    directed = graph.is_directed() if settings.directed is None else settings.directed
    return assemble(str(path), nodes, [table], settings, directed)


def _read(path: Path) -> Any:
    """Returns the NetworkX graph of a file."""
    import networkx

    if not path.is_file():
        raise InputError(f"{path}: no such file")
    kind = FORMATS[path.suffix]
    machine.require(MEMORY_RATIO * path.stat().st_size, f"{path}: its graph")
    _require_plain(path, kind)
    read = networkx.read_graphml if path.suffix == ".graphml" else networkx.read_gexf
    try:
        with warnings.catch_warnings(record=True) as noticed:
            warnings.simplefilter("always")
            graph = read(path)
    except Exception as error:
        # Files that do not follow the format raise errors of every kind.
        raise InputError(f"{path}: not a readable {kind} file: {first_line(error)}") from None
    for text in dict.fromkeys(str(each.message) for each in noticed):
        log.warning("%s: %s", path, text.splitlines()[0])
    return graph


def _require_plain(path: Path, kind: str) -> None:
    """Raises an error unless a file is well-formed XML with one graph and without entities.

    NetworkX would expand entities, which may grow exponentially, ignore further graphs, and name a
    node without an id "None".
    """
    graphs = []

    def declared(*_: object) -> None:
        raise InputError(
            f"{path}: line {parser.CurrentLineNumber}: got a declaration of a document type or an "
            f"entity, which {kind} files do not need; remove it"
        )

    def started(name: str, attributes: dict[str, str]) -> None:
        element = name.rpartition(":")[2]
        if element == "graph":
            graphs.append(parser.CurrentLineNumber)
        for needed in NEEDED.get(element, ()):
            if needed not in attributes:
                raise InputError(
                    f"{path}: line {parser.CurrentLineNumber}: got an element {element!r} without "
                    f"the attribute {needed!r}"
                )

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = declared
    parser.EntityDeclHandler = declared
    parser.StartElementHandler = started
    try:
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                parser.Parse(block)
            parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise InputError(f"{path}: not a readable {kind} file: {first_line(error)}") from None
    if len(graphs) != 1:
        where = f", the second one in line {graphs[1]}" if graphs else ""
        raise InputError(f"{path}: got {len(graphs)} graphs{where}, expected one")


def _attributes(items: Any, without: Sequence[str]) -> dict[str, list[Any]]:
    """Returns the values of each attribute, None where it is missing."""
    rows = [{str(key): value for key, value in values.items()} for values in items]
    names = dict.fromkeys(key for values in rows for key in values if key not in without)
    return {name: [values.get(name) for values in rows] for name in names}


def _without_names(path: Path, found: dict[str, list[Any]], label: str | None) -> None:
    """Removes the label of GEXF nodes if it is only their name."""
    if label == "label" or "label" not in found:
        return
    given = [value for value in found["label"] if value]
    if label is not None or len(set(given)) == len(given):
        del found["label"]
        if label is None:
            log.warning(
                "%s: the label of each node is different and taken for its name, not for its "
                "class; name the attribute with the classes: --label NAME",
                path,
            )


def _frame(
    path: Path,
    own: dict[str, list[str]],
    attributes: dict[str, list[Any]],
    place: Callable[[int], str],
) -> Frame:
    """Returns the columns of nodes or edges. An attribute with the name of one of the first columns
    is renamed."""
    columns = {name: pa.array(values, pa.string()) for name, values in own.items()}
    for name, values in attributes.items():
        title = f"attribute {name}" if name in own else name
        row = next((r for r, v in enumerate(values) if isinstance(v, list | tuple | dict)), None)
        if row is not None:
            raise InputError(
                f"{path}: {place(row)}, attribute {name!r}: got values over time or a group, "
                "expected one value"
            )
        try:
            columns[title] = pa.array(values)
        except (pa.ArrowException, TypeError, OverflowError):
            columns[title] = pa.array([None if v is None else str(v) for v in values])
    chunked = {name: pa.chunked_array([cells]) for name, cells in columns.items()}
    return Frame(str(path), chunked, place, typed=False)
