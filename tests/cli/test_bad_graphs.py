"""Mistakes in a user's graph on the command line: a one-line error, and no files written."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from dgt.cli import main
from tests.small import block_graph, write_folder


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new, 1))

    return change


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def append(name: str, line: str) -> Callable[[Path], None]:
    return lambda folder: edit(name, text := (folder / name).read_text(), text + line)(folder)


def relabel(name: Callable[[int], str]) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        head, *lines = (folder / "nodes.csv").read_text().splitlines()
        rows = [line.split(",") for line in lines]
        for node, row in enumerate(rows):
            row[1] = name(node)
        (folder / "nodes.csv").write_text("\n".join([head, *map(",".join, rows)]) + "\n")

    return change


def only_heads(folder: Path) -> None:
    for name in ("nodes.csv", "edges.csv"):
        (folder / name).write_text((folder / name).read_text().splitlines()[0] + "\n")


BAD: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "missing edges": (remove("edges.csv"), ["edges"]),
    "missing column id": (edit("nodes.csv", "id,", "name,"), ["nodes.csv", "id"]),
    "missing column target": (edit("edges.csv", "target", "goal"), ["edges.csv", "target"]),
    "edge to an unknown id": (
        append("edges.csv", "n3,n999\n"),
        ["edges.csv", "n999"],
    ),
    "duplicate id": (edit("nodes.csv", "\nn5,", "\nn4,"), ["nodes.csv", "n4"]),
    "infinity": (
        append("nodes.csv", f"new,red{',inf' * 12}\n"),
        ["nodes.csv", "f0", "inf"],
    ),
    "no number": (
        append("nodes.csv", f"new,red{',much' * 12}\n"),
        ["nodes.csv", "f0", "much"],
    ),
    "one class": (relabel(lambda node: "red"), ["class"]),
    "no label": (relabel(lambda node: ""), ["class"]),
    "a class of two": (
        relabel(lambda node: "rare" if node < 2 else "red" if node % 2 else "blue"),
        ["'rare'", "2", "3"],
    ),
    "empty graph": (only_heads, ["empty"]),
    "unknown split word": (
        lambda folder: (
            edit("nodes.csv", "id,label", "id,split")(folder),
            relabel(lambda node: "train" if node else "trian")(folder),
        ),
        ["nodes.csv", "split", "trian", "train"],
    ),
}


FOR_TRAINING_ONLY = ("one class", "no label", "a class of two")


@pytest.mark.parametrize(
    ("command", "mistake"),
    [("train", mistake) for mistake in BAD]
    + [("info", mistake) for mistake in BAD if mistake not in FOR_TRAINING_ONLY],
)
def test_a_mistake_in_a_folder(tmp_path: Path, capsys, mistake: str, command: str):
    change, parts = BAD[mistake]
    graph = write_folder(tmp_path / "graph", block_graph())
    change(graph)
    require_refused(capsys, tmp_path, [command, str(graph)], parts)


def require_refused(capsys, folder: Path, tokens: list[str], parts: list[str]) -> None:
    before = {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    out = ["--out", str(folder / "run")] if tokens[0] == "train" else []
    assert main([*tokens, *out]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
    for part in parts:
        assert part in shown.err
    assert {p: p.read_bytes() for p in folder.rglob("*") if p.is_file()} == before
    assert not (folder / "run").exists()


@pytest.mark.parametrize("command", ["train", "info"])
def test_files_that_are_truncated_or_foreign(tmp_path: Path, capsys, command: str):
    data = block_graph()
    torch.save(data, tmp_path / "whole.pt")
    arrays = {"node_features": data.x, "node_labels": data.y, "edges": data.edge_index.t()}
    np.savez(tmp_path / "whole.npz", **{name: value.numpy() for name, value in arrays.items()})
    for kind in ("pt", "npz"):
        whole = (tmp_path / f"whole.{kind}").read_bytes()
        for content in (b"", b"no such thing", whole[:50], whole[: len(whole) // 2], whole[:-1]):
            bad = tmp_path / f"bad.{kind}"
            bad.write_bytes(content)
            require_refused(capsys, tmp_path, [command, str(bad)], [str(bad)])
    torch.save({"weights": torch.zeros(3)}, tmp_path / "foreign.pt")
    require_refused(capsys, tmp_path, [command, str(tmp_path / "foreign.pt")], ["foreign.pt"])
    np.savez(tmp_path / "foreign.npz", weights=np.zeros(3))
    require_refused(capsys, tmp_path, [command, str(tmp_path / "foreign.npz")], ["foreign.npz"])
    (tmp_path / "graph.gml").write_text("graph [ ]")
    require_refused(capsys, tmp_path, [command, str(tmp_path / "graph.gml")], ["graph.gml"])


def test_whole_files_are_taken(tmp_path: Path, capsys):
    """Without the mistakes above, the files are valid."""
    data = block_graph()
    torch.save(data, tmp_path / "whole.pt")
    arrays = {"node_features": data.x, "node_labels": data.y, "edges": data.edge_index.t()}
    np.savez(tmp_path / "whole.npz", **{name: value.numpy() for name, value in arrays.items()})
    write_folder(tmp_path / "graph", data)
    for name in ("whole.pt", "whole.npz", "graph"):
        assert main(["info", str(tmp_path / name), "--json"]) == 0
