"""Training by one process against several, and batches of nodes against the whole graph.

By default on a synthetic graph of ogbn-arxiv's size. ``dgt train`` runs alone and under torchrun;
what is compared are the losses of all epochs, the predictions, and the most memory that each
process held, from its start to its end; node sequences are made before, by a process of its own.
Then the logits of some batches are set against those of the whole graph, for one and two blocks.

Sums over nodes are added in another order by several processes, and their last bits differ. In
single precision that is enough for runs to drift apart on a large graph: the more so as the kernel
is cut off at a weight that is not yet small (by default exp(-4)), where such a bit can move a key
across the end of its window. In double precision they stay together.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
from rich.console import Console
from rich.table import Table

from dgt.cli import main as dgt
from dgt.config import Config
from dgt.datasets import load
from dgt.io import normalise
from dgt.nn import build
from dgt.prepare import prepare
from dgt.steps import Batched
from measure import in_own_process, memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graph", default="synthetic:arxiv")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--precision", nargs="+", default=["single", "double"])
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--worker", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(Path(arguments.worker[0]), arguments.worker[1:])
        return
    in_own_process(prepared, arguments.graph)
    results: dict[str, Any] = {"ranks": []}
    for precision in arguments.precision:
        with tempfile.TemporaryDirectory() as folder:
            runs = {r: run(r, precision, arguments, Path(folder)) for r in [1, *arguments.ranks]}
        results["ranks"] += [
            {"precision": precision, "ranks": r, **compared(found, runs[1])}
            for r, found in runs.items()
        ]
    results["batches"] = {
        blocks: in_own_process(batch_error, arguments.graph, blocks, arguments.batch_size)
        for blocks in (1, 2)
    }
    if arguments.json:
        print(json.dumps({"settings": vars(arguments), **results}, indent=2))
    else:
        show(results)


def prepared(graph: str) -> dict[str, Any]:
    """Leaves the node sequences in the cache."""
    prepare(normalise(load(graph)), Config(), progress=True)
    return {}


def worker(folder: Path, command: list[str]) -> None:
    """One process of a run, which leaves its peak memory in a file."""
    code = dgt(command)
    if code:
        sys.exit(code)
    rank = os.environ.get("RANK", "0")
    (folder / f"memory-{rank}").write_text(str(memory("VmHWM")))


def run(ranks: int, precision: str, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """The epochs, predictions and memory of a run by a number of processes, one thread each."""
    own = folder / str(ranks)
    own.mkdir()
    launch = [sys.executable]
    if ranks > 1:
        launch += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = ["train", arguments.graph, "--out", str(own / "run"), "--quiet", "--json"]
    command += ["--threads=1", f"--epochs={arguments.epochs}", f"--patience={arguments.epochs}"]
    command += [f"--precision={precision}"]
    start = time.monotonic()
    subprocess.run(
        [*launch, __file__, "--worker", str(own), *command], check=True, stdout=subprocess.DEVNULL
    )
    lines = (own / "run" / "metrics.jsonl").read_text().splitlines()
    metrics = json.loads((own / "run" / "metrics.json").read_text())
    return {
        "epochs": [json.loads(line) for line in lines],
        "predictions": pq.read_table(own / "run" / "predictions.parquet")["prediction"].to_pylist(),
        "bytes": [int((own / f"memory-{r}").read_text()) for r in range(ranks)],
        "seconds": time.monotonic() - start,
        "seconds_per_epoch": metrics["seconds"] / metrics["epochs"],
    }


def compared(found: dict[str, Any], alone: dict[str, Any]) -> dict[str, Any]:
    losses = [
        abs(a[name] - b[name])
        for a, b in zip(found["epochs"], alone["epochs"], strict=True)
        for name in ("train_loss", "val_loss")
    ]
    pairs = zip(found["predictions"], alone["predictions"], strict=True)
    return {
        "largest_difference_of_losses": max(losses),
        "predictions_that_differ": sum(a != b for a, b in pairs),
        "bytes": found["bytes"],
        "memory_to_one": max(found["bytes"]) / alone["bytes"][0],
        "seconds_per_epoch": found["seconds_per_epoch"],
        "train_loss": found["epochs"][-1]["train_loss"],
    }


def batch_error(graph: str, blocks: int, size: int) -> dict[str, Any]:
    """The largest difference between the logits of batches and those of the whole graph."""
    config = Config().replace(blocks=blocks)
    data = normalise(load(graph))
    inputs = prepare(data, config)
    torch.manual_seed(0)
    columns = 0 if inputs["encoding"] is None else inputs["encoding"].size(1)
    model = build(config, data.x.size(1), len(data.class_names), columns).eval()
    for block in model.blocks:  # keys that differ from node to node
        torch.nn.init.normal_(block.attention.query.weight, std=0.3)
    steps = Batched(inputs, size, blocks)
    errors, reached = [], []
    with torch.no_grad():
        whole = model(**inputs)
        for nodes in torch.randperm(data.num_nodes).split(size)[:4]:
            given = steps.inputs(nodes)
            reached.append(given["x"].size(0))
            errors.append(float((model(**given) - whole[nodes]).abs().max()))
    return {"largest_difference": max(errors), "nodes_reached": max(reached)}


def show(results: dict[str, Any]) -> None:
    columns = ("losses differ by", "predictions", "memory of a rank", "to one", "s/epoch")
    table = Table("precision", "ranks", *columns)
    for row in results["ranks"]:
        table.add_row(
            row["precision"],
            str(row["ranks"]),
            f"{row['largest_difference_of_losses']:.1e}",
            f"{row['predictions_that_differ']} differ",
            f"{max(row['bytes']) / 2**20:,.0f} MiB",
            f"{row['memory_to_one']:.2f}",
            f"{row['seconds_per_epoch']:.2f}",
        )
    console = Console()
    console.print(table)
    for blocks, row in results["batches"].items():
        console.print(
            f"batches, {blocks} block(s): logits differ by {row['largest_difference']:.1e}, "
            f"{row['nodes_reached']:,} nodes reached"
        )


if __name__ == "__main__":
    main()
