"""The valid inputs that the cases change: a small graph in all formats, runs, a search, records.

They are made once per campaign, in the folder that the variable ``DGT_CAMPAIGN`` names.
"""

import functools
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch_geometric.data import Data

from tests.campaign.case import Wrong

FOLDER = "DGT_CAMPAIGN"
NODES, FEATURES, CLASSES = 30, 4, 3
NAMES = ("blue", "green", "red")  # sorted, as those of a table are
# Small and fast. The fused attention is compiled for each number of channels and of keys.
QUICK: dict[str, Any] = {
    "epochs": 2,
    "hidden_channels": 8,
    "length": 4,
    "heads": 2,
    "keys": 2,
    "device": "cpu",
}
FLAGS = [f"--{name.replace('_', '-')}={value}" for name, value in QUICK.items()]
LONGER = ["--epochs=6" if flag.startswith("--epochs") else flag for flag in FLAGS]
TRAIN = ["train", "graph", "--out", "run", "--quiet", *FLAGS]


def place() -> Path:
    return Path(os.environ[FOLDER])


def copy(*names: str) -> None:
    """Copies parts of the material into the current folder."""
    for name in names:
        source = place() / name
        if source.is_dir():
            shutil.copytree(source, name)
        else:
            shutil.copyfile(source, name)


def graph(seed: int = 0, nodes: int = NODES) -> Data:
    """Returns the graph: three classes in a stochastic block model, two splits' worth of labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(nodes) % CLASSES
    x = np.round(rng.normal(size=(CLASSES, FEATURES))[y] + rng.normal(size=(nodes, FEATURES)), 3)
    same = y[:, None] == y[None, :]
    joined = np.triu(rng.random((nodes, nodes)) < np.where(same, 0.4, 0.08), k=1)
    joined[0, 1] = True
    part = np.array(["train", "train", "val", "test"])[np.arange(nodes) // CLASSES % 4]
    y[nodes - 1] = -1
    part[nodes - 1] = ""
    return Data(
        x=torch.from_numpy(x).float(),
        edge_index=torch.from_numpy(np.stack(joined.nonzero())),
        y=torch.from_numpy(y),
        node_ids=[f"n{i}" for i in range(nodes)],
        class_names=list(NAMES),
        feature_names=[f"f{i}" for i in range(FEATURES)],
        **{f"{name}_mask": torch.from_numpy(part == name) for name in ("train", "val", "test")},
    )


def tables(data: Data) -> tuple[list[list[str]], list[list[str]]]:
    """Returns the rows of the tables of nodes and edges, with their headers."""
    ids = data.node_ids
    parts = ("train", "val", "test")
    nodes = [["id", "label", "split", *data.feature_names]]
    for node, (c, x) in enumerate(zip(data.y.tolist(), data.x.tolist(), strict=True)):
        split = next((p for p in parts if data[f"{p}_mask"][node]), "")
        # Nine digits give a float32 back.
        features = [f"{value:.9g}" for value in x]
        nodes.append([ids[node], NAMES[c] if c >= 0 else "", split, *features])
    edges = [["source", "target"]]
    edges += [[ids[a], ids[b]] for a, b in data.edge_index.t().tolist()]
    return nodes, edges


def write_csv(path: Path | str, rows: list[list[str]]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")


def arrow(rows: list[list[str]]) -> pa.Table:
    """Returns a table with strings and, for the features, the numbers of a CSV file."""
    header, *body = rows
    columns = dict(zip(header, zip(*body, strict=True), strict=True))
    return pa.table(
        {
            name: pa.array([float(v) for v in values], pa.float64())
            if name.startswith("f")
            else pa.array([v or None for v in values], pa.string())
            for name, values in columns.items()
        }
    )


def arrays() -> dict[str, np.ndarray]:
    """Returns the graph as named arrays."""
    data = graph()
    names = ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask")
    found = {name: data[name].numpy() for name in names}
    lists = ("node_ids", "class_names", "feature_names")
    return found | {name: np.array(data[name]) for name in lists}


def tensors() -> dict[str, Any]:
    """Returns the graph as a dict of tensors and lists."""
    return graph().to_dict()


def predictions(path: Path | str) -> dict[str, tuple[str, float]]:
    """Reads predictions: the class and the probability of each id."""
    rows = pq.read_table(path).to_pylist()
    return {str(row["id"]): (row["prediction"], row["probability"]) for row in rows}


@functools.cache
def answer(run: str) -> dict[str, tuple[str, float]]:
    """Returns the predictions of a quick run on the graph."""
    return predictions(place() / run / "predictions.parquet")


def require_answer(found: dict[str, tuple[str, float]], run: str = "run") -> None:
    """Raises :class:`Wrong` unless these are the predictions of a quick run, bit for bit.

    Args:
        found: Predictions by id.
        run: "run", on tables, or "arrays", on arrays, which are not scaled.
    """
    expected = answer(run)
    if found != expected:
        changed = [id for id in expected if found.get(id) != expected[id]]
        raise Wrong("wrong answer", f"predictions of {len(changed)} nodes differ from the original")


def require_run(folder: Path | str = "run") -> None:
    """Raises :class:`Wrong` unless a folder holds a complete and plausible run on the graph.

    The accuracy in ``metrics.json`` must be that of the predictions on the test nodes.
    """
    folder = Path(folder)
    found = predictions(folder / "predictions.parquet")
    metrics = json.loads((folder / "metrics.json").read_text())
    data = graph()
    if list(found) != data.node_ids:
        raise Wrong("wrong answer", f"predictions of other nodes: {list(found)[:5]}")
    if any(name not in NAMES or not 0 < share <= 1 for name, share in found.values()):
        raise Wrong("wrong answer", f"impossible predictions: {list(found.values())[:3]}")
    test = [node for node in range(NODES) if data.test_mask[node]]
    right = sum(found[f"n{node}"][0] == NAMES[data.y[node]] for node in test) / len(test)
    if metrics["splits"] == "given" and metrics["test_accuracy"] != right:
        raise Wrong("wrong answer", f"accuracy {metrics['test_accuracy']}, computed {right}")
    if (folder / "checkpoint.safetensors").exists():
        raise Wrong("files left", "checkpoint.safetensors")


def require_task(task: str, folder: Path | str = "run") -> None:
    """Raises :class:`Wrong` unless a folder holds a run on the graph with a metric that fits.

    Args:
        task: "multilabel", with the classes as labels, or "regression" of the first feature.
        folder: The folder.
    """
    data = graph()
    rows = pq.read_table(Path(folder, "predictions.parquet")).to_pylist()
    metrics = json.loads(Path(folder, "metrics.json").read_text())["test"]
    if [row["id"] for row in rows] != data.node_ids:
        raise Wrong("wrong answer", f"predictions of other nodes: {rows[:3]}")
    test = [row for row, inside in zip(rows, data.test_mask, strict=True) if inside]
    if task == "regression":
        errors = [row["prediction"] for row in test] - data.x[data.test_mask, 0].double().numpy()
        found, expected = metrics["mae"], float(np.abs(errors).mean())
    else:
        names = [NAMES[c] for c in data.y[data.test_mask]]
        right = [row["prediction"] == name for row, name in zip(test, names, strict=True)]
        found, expected = metrics["accuracy"], sum(right) / len(right)
    if not abs(found - expected) < 1e-6:
        raise Wrong("wrong answer", f"metric {found}, computed {expected}")


def warm_up() -> None:
    """Compiles or loads the operators, so that no case pays for it."""
    from dgt import NodeClassifier

    NodeClassifier(**QUICK).fit(graph())


def make(folder: Path) -> None:
    """Writes all of the material."""
    from dgt.cli import main
    from dgt.training import loop

    os.environ[FOLDER] = str(folder)
    folder.mkdir(parents=True, exist_ok=True)
    back = Path.cwd()
    os.chdir(folder)
    try:
        nodes, edges = tables(graph())
        write_csv("graph/nodes.csv", nodes)
        write_csv("graph/edges.csv", edges)
        Path("parquet").mkdir()
        pq.write_table(arrow(nodes), "parquet/nodes.parquet")
        pq.write_table(arrow(edges), "parquet/edges.parquet")
        np.savez("graph.npz", **arrays())
        torch.save(tensors(), "graph.pt")
        here = [str(folder / "graph"), "--quiet", *FLAGS]
        _run(main, ["train", *here, "--out", "run"])
        raw = [str(folder / "graph.npz"), "--quiet", *FLAGS]
        _run(main, ["train", *raw, "--out", "arrays"])
        _run(main, ["train", *raw, "--out", "plain", "--encoding=none"])
        _run(main, ["train", *here, "--out", "two", "--runs=2"])
        _run(main, ["train", *here, "--out", "kept", "--keep-checkpoints=3"])
        longer = [str(folder / "graph"), "--quiet", *LONGER]
        _interrupt(loop, lambda: main(["train", *longer, "--out", "half"]))
        _run(main, ["train", *longer, "--out", "whole"])
        tuned = [
            *here,
            "--trials=2",
            "--runs=1",
            "--workers=1",
            "--final-runs=0",
            "--out",
            "search",
        ]
        _run(main, ["tune", *tuned])
        _write_records(Path("results/runs.jsonl"))
    finally:
        os.chdir(back)


def _run(main: Any, tokens: list[str]) -> None:
    code = main(tokens)
    if code != 0:
        raise RuntimeError(f"dgt {' '.join(tokens)}: exit code {code}")


def _interrupt(loop: Any, train: Any) -> None:
    """Trains until the third checkpoint is written."""
    save, every, left = loop.checkpoint.save, loop.CHECKPOINT_SECONDS, 3

    def counted(*arguments: Any) -> None:
        nonlocal left
        save(*arguments)
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    loop.checkpoint.save, loop.CHECKPOINT_SECONDS = counted, 0
    try:
        if train() != 130:
            raise RuntimeError("the run was not interrupted")
    finally:
        loop.checkpoint.save, loop.CHECKPOINT_SECONDS = save, every


def _write_records(path: Path) -> None:
    """Copies the recorded runs of one model on one data set."""
    own = Path(__file__).parents[2] / "results" / "runs.jsonl"
    lines = [line for line in own.read_text().splitlines(keepends=True) if _chosen(line)]
    path.parent.mkdir()
    path.write_text("".join(lines[:10]))


def _chosen(line: str) -> bool:
    record = json.loads(line)
    return record["model"] == "gcn" and record["dataset"] == "cora" and record["table"] == "table1"


if __name__ == "__main__":
    make(Path(sys.argv[1]))
