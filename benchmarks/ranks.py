"""Training with several ranks compared with one, and batches compared with the whole graph.

The default graph is a synthetic graph with the size of ogbn-arxiv. ``dgt train`` runs alone and
under torchrun. The losses of all epochs, the predictions and the peak memory of each rank are
compared; node sequences are computed before, in a separate process. Then the logits of some batches
are compared with those of the whole graph, for one and two blocks.

Runs in single precision diverge on a large graph if a last bit differs: Adam divides gradients by
their size, and the kernel is cut off at a weight that is not yet small (exp(-4) by default), where
a last bit can move a key across the end of its window. Ranks therefore add up sums over nodes in
blocks, see ``dgt.ops.sums``, and the weights have the bits of those of one process. The losses
differ by the rounding of the loss itself.
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
from dgt.data import load
from dgt.data.files import normalize
from dgt.nn import build
from dgt.prepare import prepare
from dgt.training.batching import Batched
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
    """Writes the node sequences to the cache."""
    prepare(normalize(load(graph)), Config.of("dgt"), progress=True)
    return {}


def worker(folder: Path, command: list[str]) -> None:
    """Runs one rank, and writes its peak memory to a file."""
    code = dgt(command)
    if code:
        sys.exit(code)
    rank = os.environ.get("RANK", "0")
    (folder / f"memory-{rank}").write_text(str(memory("VmHWM")))


def run(ranks: int, precision: str, arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Returns the epochs, predictions and memory of a run with a number of ranks, one thread
    each."""
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
    """Returns the largest difference between the logits of batches and those of the whole graph."""
    config = Config.of("dgt").replace(blocks=blocks)
    data = normalize(load(graph))
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
    columns = ("losses differ by", "predictions", "memory per rank", "compared with one", "s/epoch")
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
