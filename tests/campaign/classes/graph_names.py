"""Names of graphs, synthetic graphs, and output files that exist or cannot be written."""

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.campaign.case import Case, Expect
from tests.campaign.judge import command
from tests.campaign.material import FLAGS, copy, place, predictions, require_answer

BAD = {
    "nodes": (
        "",
        "x",
        "-1",
        "0",
        "5",
        "1.5",
        "nan",
        "inf",
        "1e400",
        "1e18",
        "2e9",
        "99999999999999999999999",
        "1_0",
        "½",
    ),
    "edges": ("", "x", "-1", "0", "1e18", "1e12", "2.5"),
    "features": ("", "x", "-1", "0", "1e12", "1e9", "0.5"),
    "classes": ("", "x", "-1", "0", "1", "1e9", "2.5"),
    "homophily": ("", "x", "-0.1", "1.1", "nan", "inf", "2"),
    "exponent": ("", "x", "1", "0", "-1", "nan", "inf"),
    "seed": ("", "x", "-1", "1e30", "0.5", "nan"),
}
SMALL = {"nodes": "60", "edges": "150", "features": "4", "classes": "3"}


def cases() -> Iterator[Case]:
    for key, values in BAD.items():
        for value in values:
            text = ",".join(f"{k}={v}" for k, v in (SMALL | {key: value}).items())
            yield _info(f"synthetic {key}={value}", "refused", f"synthetic:{text}", (key,))
    for text in (
        "",
        ",",
        "=",
        "nodes",
        "nodes=",
        "=5",
        "nodes=60,nodes=60",
        "nodes=60,,edges=9",
        "arxiv,arxiv",
        "Arxiv",
        "arxiv;seed=1",
        "nodes=60 edges=9",
        "size=5",
        "nodes=60,edges=1770,classes=3",
        "a" * 5000,
        "nodes=6=7",
    ):
        yield _info(f"synthetic {text[:30]!r}", "refused", f"synthetic:{text}", ("synthetic",))
    for name in (
        "Cora",
        "cora ",
        "cora/",
        "pubmed",
        "https://example.com/cora",
        "~",
        "*",
        "-",
        "cora.npz",
        "graph.txt",
        "graph.csv",
        "s3://x",
    ):
        yield _info(f"name {name!r}", "refused", name, (name,))
    for key, value in {
        "nodes": "7",
        "seed": "9",
        "homophily": "0",
        "exponent": "9.5",
        "classes": "2",
        "edges": "9",
    }.items():
        settings = SMALL | {"edges": "9", "classes": "2", key: value}
        text = ",".join(f"{k}={v}" for k, v in settings.items())
        check = lambda out, n=settings["nodes"]: _counts(out, int(n), 9)
        yield _info(
            f"control: synthetic {key}={value}", "accepted", f"synthetic:{text}", check=check
        )
    yield _info(
        "control: synthetic nodes=6e1",
        "accepted",
        "synthetic:nodes=6e1,edges=1.5e2,features=4,classes=3",
        check=lambda out: _counts(out, 60, 150),
    )
    yield _info("control: cora", "accepted", "cora", check=lambda out: _counts(out, 2708, 5278))
    yield from _outputs()


def _info(
    name: str,
    expect: Expect,
    graph: str,
    names: tuple[str, ...] = (),
    check: Callable[[Any], object] = lambda _: None,
) -> Case:
    tokens = ["info", graph, "--json"]
    return Case(
        name,
        expect,
        command(*tokens),
        lambda: Path("graph.txt").write_text("x"),
        names,
        check,
        f"dgt {shlex.join(tokens)[:300]}",
    )


def _counts(out: str, nodes: int, edges: int) -> None:
    import json

    facts = json.loads(out)
    assert (facts["nodes"], facts["edges"]) == (nodes, edges), facts


def _outputs() -> Iterator[Case]:
    """Yields places for predictions and figures."""

    def predict(out: str, *more: str) -> list[str]:
        return ["predict", "run", "graph", "--quiet", "--out", out, *more]

    def explain(out: str) -> list[str]:
        return ["explain", "run", "n3", "--out", out]

    def prepare(make: Callable[[], object]) -> Callable[[], None]:
        def both() -> None:
            copy("graph", "run")
            make()

        return both

    nothing = lambda: None
    wrong: dict[str, tuple[list[str], Callable[[], object]]] = {
        "no suffix": (predict("p"), nothing),
        "another suffix": (predict("p.json"), nothing),
        "only a suffix": (predict(".csv"), nothing),
        "a folder": (predict("p.csv"), lambda: Path("p.csv").mkdir()),
        "below a file": (predict("file.csv/p.csv"), lambda: Path("file.csv").write_text("x")),
        "a file that exists": (predict("p.csv"), lambda: Path("p.csv").write_text("mine")),
        "the nodes": (predict("graph/nodes.csv"), nothing),
        "the nodes, overwritten": (predict("graph/nodes.csv", "--overwrite"), nothing),
        "the edges, overwritten": (predict("graph/edges.csv", "--overwrite"), nothing),
        "the nodes through a link": (
            predict("p.csv", "--overwrite"),
            lambda: Path("p.csv").symlink_to("graph/nodes.csv"),
        ),
        "the nodes by a hard link": (
            predict("p.csv", "--overwrite"),
            lambda: os.link("graph/nodes.csv", "p.csv"),
        ),
        "the nodes by another path": (predict("graph/../graph/nodes.csv", "--overwrite"), nothing),
        "a device": (predict("/dev/null"), nothing),
        "a pipe": (predict("p.csv", "--overwrite"), lambda: os.mkfifo("p.csv")),
        "a long name": (predict("x" * 300 + ".csv"), nothing),
        "a zero byte": (predict("a\0b.csv"), nothing),
        "a link to nothing": (predict("p.csv"), lambda: Path("p.csv").symlink_to("nowhere/p.csv")),
        "the process's files": (predict("/proc/self/x.csv"), nothing),
        "figure: another suffix": (explain("f.jpg"), nothing),
        "figure: a folder": (explain("f.png"), lambda: Path("f.png").mkdir()),
        "figure: a zero byte": (explain("a\0.png"), nothing),
        "figure: below a file": (explain("file/f.png"), lambda: Path("file").write_text("x")),
        "figure: a file that exists": (explain("f.png"), lambda: Path("f.png").write_text("mine")),
        "run is a file": (
            ["predict", "file", "--out", "p.csv"],
            lambda: Path("file").write_text("x"),
        ),
        "run is a graph": (["predict", "graph", "--out", "p.csv"], nothing),
        "run is missing": (["predict", "missing", "--out", "p.csv"], nothing),
        "run of several": (["predict", str(place() / "two"), "--out", "p.csv"], nothing),
    }
    for name, (tokens, make) in wrong.items():
        names = (
            f"{tokens[-1].removeprefix('--')[:30]}|{tokens[1]}|out|null|name|nodes|edges|p.csv",
        )
        repeat = f"dgt {shlex.join(tokens)}"[:300]
        expect: Expect = (
            "either" if name in ("a link to nothing", "figure: a file that exists") else "refused"
        )
        yield Case(f"out: {name}", expect, command(*tokens), prepare(make), names, repeat=repeat)
    own = str(place() / "graph")
    for name, tokens, make in (
        ("Parquet", ["predict", "run", own, "--out", "p.parquet"], nothing),
        ("a new folder", ["predict", "run", own, "--out", "new/p.parquet"], nothing),
        (
            "overwritten",
            ["predict", "run", own, "--out", "p.parquet", "--overwrite"],
            lambda: Path("p.parquet").write_text("mine"),
        ),
        (
            "a link to a file",
            ["predict", "run", own, "--out", "p.parquet", "--overwrite"],
            lambda: (Path("q.parquet").write_text("x"), Path("p.parquet").symlink_to("q.parquet")),
        ),
        ("without a graph", ["predict", "run", "--out", "p.parquet"], nothing),
        ("spaces", ["predict", "run", "--out", "a b/p q.parquet"], nothing),
        ("Unicode", ["predict", "run", "--out", "日本/é.parquet"], nothing),
    ):
        path = tokens[tokens.index("--out") + 1]
        check = lambda _, path=path: require_answer(predictions(path))
        yield Case(
            f"control: out: {name}",
            "accepted",
            command(*tokens),
            prepare(make),
            check=check,
            repeat=f"dgt {shlex.join(tokens)}",
        )
    for suffix in ("png", "pdf"):
        yield Case(
            f"control: figure: {suffix}",
            "accepted",
            command(*explain(f"f.{suffix}")),
            prepare(nothing),
            check=lambda _, s=suffix: _starts(Path(f"f.{s}")),
        )
    again = ["train", "graph", "--quiet", *FLAGS]
    yield Case(
        "control: default folder",
        "accepted",
        command(*again),
        prepare(nothing),
        check=lambda _: require_answer(predictions("runs/graph-1/predictions.parquet")),
    )


def _starts(path: Path) -> None:
    assert path.read_bytes()[:4] in (b"\x89PNG", b"%PDF")
