"""Graphs as ``.graphml``, ``.gexf`` and ``.mtx`` files: damaged, hostile, with wrong contents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx

from tests.campaign import mutations
from tests.campaign.case import Case, Expect
from tests.campaign.classes.training import same, some, train
from tests.campaign.material import graph, tables, write_csv

KINDS = ("graphml", "gexf")
BOMB = "<!DOCTYPE g [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;'>]>"
SECRET = "<!DOCTYPE g [<!ENTITY a SYSTEM 'file:///etc/hostname'>]>"


def cases() -> Iterator[Case]:
    for kind in KINDS:
        content = "\n".join(_lines(kind)).encode()
        for name, changed in mutations.damaged(content, kind, 12):
            yield _xml(kind, name, "either", changed)
        for name, start in {"entities": BOMB, "an entity of a file": SECRET}.items():
            text = content.decode().replace("?>", f"?>{start}", 1).replace("n3", "&a;")
            yield _xml(kind, name, "refused", text.encode())
        for name, old, new in (
            ("no nodes", "<node ", "<nothing "),
            ("no graph", "<graph ", "<nothing "),
            ("edges without targets", "target=", "end="),
        ):
            text = content.decode().replace(old, new)
            text = text.replace(old.replace("<", "</").strip(), new.replace("<", "</").strip())
            yield _xml(kind, name, "refused", text.encode())
        yield _xml(kind, "control: unchanged", "accepted", content, lambda _: same())
    for name, lines in _matrices().items():
        expect: Expect = "accepted" if name.startswith("control") else "refused"
        yield _mtx(name, expect, "\n".join(lines) + "\n")


def _lines(kind: str) -> Iterator[str]:
    """Yields the lines of a file with the graph."""
    nodes, edges = tables(graph())
    header, *rows = nodes
    found: Any = nx.Graph()
    for row in rows:
        values = dict(zip(header[1:], row[1:], strict=True))
        numbers = {name: float(values.pop(name)) for name in header if name.startswith("f")}
        found.add_node(row[0], **{k: v for k, v in values.items() if v}, **numbers)
    found.add_edges_from(edges[1:])
    if kind == "graphml":
        yield from nx.generate_graphml(found)
    else:
        # In GEXF, the attribute label is the name of a node.
        for _, values in found.nodes(data=True):
            values["label"] = values.get("label", "")
        yield from nx.generate_gexf(found)


def _xml(kind: str, name: str, expect: Expect, content: bytes, check: Any = None) -> Case:
    file = f"graph.{kind}"
    check = check or (lambda _: some())
    return train(
        f"{file}: {name}", expect, lambda: Path(file).write_bytes(content), (file,), check, file
    )


def _matrices() -> dict[str, list[str]]:
    """Returns the lines of matrices by name."""
    data = graph()
    pairs = [(max(pair) + 1, min(pair) + 1) for pair in data.edge_index.t().tolist()]
    entries = [f"{a} {b}" for a, b in pairs]
    kind = "%%MatrixMarket matrix coordinate pattern symmetric"
    real = kind.replace("pattern", "real")
    size = f"30 30 {len(entries)}"
    return {
        "control: unchanged": [kind, size, *entries],
        "control: comments": [kind, "% a comment", size, *entries],
        "empty": [],
        "no header": [size, *entries],
        "another header": [kind.replace("matrix", "tensor"), size, *entries],
        "not square": [kind.replace("symmetric", "general"), f"30 31 {len(entries)}", *entries],
        "too few entries": [kind, size, *entries[:-3]],
        "an entry out of range": [kind, size, *entries[:-1], "31 1"],
        "an entry 0": [kind, size, *entries[:-1], "5 0"],
        "words": [kind, size, *entries[:-1], "five one"],
        "negative weights": [real, size, *(f"{entry} -1" for entry in entries)],
        "weights that are NaN": [real, size, *(f"{entry} nan" for entry in entries)],
        "complex weights": [
            kind.replace("pattern", "complex"), size, *(f"{entry} 1 1" for entry in entries)
        ],
        "1e12 nodes": [kind, "1000000000000 1000000000000 1", "2 1"],
        "a negative size": [kind, "-30 -30 1", "2 1"],
    }  # fmt: skip


def _mtx(name: str, expect: Expect, text: str) -> Case:
    def write() -> None:
        nodes, _ = tables(graph())
        write_csv(
            "graph/nodes.csv", [nodes[0], *([str(i + 1), *r[1:]] for i, r in enumerate(nodes[1:]))]
        )
        Path("graph/edges.mtx").write_text(text)

    return train(f"edges.mtx: {name}", expect, write, ("edges.mtx|nodes.csv",), lambda _: some())
