"""DGT and its peers on the same synthetic graphs: time per step, time to prepare, and memory.

The graphs have 10,000 to a million nodes with ten edges each, and the sizes of ogbn-arxiv,
twitch-gamers and Reddit. A step is a forward pass over the whole graph, cross-entropy on the
training nodes (48%), a backward pass and Adam, as in ``dgt train``. DGT has its default settings,
and its last block attends only for the training nodes. Each model runs in each form that it has
(``edge_index`` or a ``torch.sparse`` CSR adjacency matrix), and its fastest form counts. A form
that does not fit into memory is left out. Every measurement runs in its own process. Its memory is
the peak of the process during a step, including graph and inputs; for the memory per node, the
memory of the process before it loads the graph is subtracted.

Each finished measurement is appended to ``OUT/measurements.jsonl`` and not repeated: after Ctrl-C
or a crash, the same command resumes. The results are written to ``OUT/peers.md`` and
``OUT/peers.png``.
"""

import argparse
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
import torch.nn.functional as F
from torch_geometric.data import Data

import summary
from cases import finish, parser_of
from dgt.config import Config
from dgt.data import load
from dgt.data.splits import random_split
from dgt.prepare import precompute
from measure import limit, measure, memory, reset_peak
from models import FORMS, FULL_NODES, setup

SWEEP = {"10k": 10_000, "30k": 30_000, "100k": 100_000, "300k": 300_000, "1M": 1_000_000}
SIZES = {
    **{
        name: f"synthetic:nodes={nodes},edges={10 * nodes},features=128,classes=40"
        for name, nodes in SWEEP.items()
    },
    **{name: f"synthetic:{name}" for name in ("arxiv", "twitch", "reddit")},
}
SMALL = "synthetic:nodes=600,edges=3000"
# Sorted by the methods of large graphs.
WARM_UP = "synthetic:nodes=40001,edges=40000,features=4"
NAMES = ("own", "edges", "csr")


def main() -> None:
    parser = parser_of(__doc__, "peers")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--models", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument(
        "--forms", nargs="+", choices=NAMES, default=NAMES, help="forms of the models"
    )
    parser.add_argument("--length", type=int, default=Config.of("dgt").sequences.length)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--most-seconds", type=float, default=120.0, help="time limit for the rounds of a model"
    )
    arguments = parser.parse_args()
    rows = finish(tasks(arguments), run, arguments, "measurements.jsonl", said)
    results = summary.summarize(rows, SWEEP)
    summary.write(arguments.out, rows, results)
    if arguments.json:
        print(json.dumps({"measurements": rows, **results}, indent=2))
    else:
        summary.show(rows, results)


def tasks(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yields all measurements, small graphs first."""
    for size in (size for size in SIZES if size in arguments.sizes):
        for model in arguments.models:
            if model == "full-attention" and SWEEP.get(size, FULL_NODES + 1) > FULL_NODES:
                continue
            settings = {"size": size, "length": arguments.length, "threads": arguments.threads}
            if model in summary.PREPARED:
                yield {"model": model, "form": "prepare", **settings}
            for form in (form for form in FORMS[model] if form in arguments.forms):
                yield {"model": model, "form": form, **settings}


def said(row: dict[str, Any]) -> str:
    return f"{row['seconds']:.2f} s, {row['peak_bytes'] / 1e9:.1f} GB"


def run(task: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    return (prepared if task["form"] == "prepare" else one)(task, arguments)


def prepared(task: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """Measures the computation of node sequences and Katz columns, without a cache."""
    limit(arguments.threads, arguments.memory)
    folder = cache(task, arguments)
    shutil.rmtree(folder, ignore_errors=True)
    # Compile everything beforehand.
    config = Config.of("dgt").replace(model=task["model"], length=task["length"])
    for graph in (SMALL, WARM_UP):
        precompute(load(graph), config, folder / "warm-up")
    shutil.rmtree(folder)
    data = load(SIZES[task["size"]])

    reset_peak()
    start = time.perf_counter()
    precompute(data, config, folder, progress=True)
    seconds = time.perf_counter() - start
    return {"nodes": data.num_nodes, "seconds": seconds, "peak_bytes": memory("VmHWM")}


def one(task: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    limit(arguments.threads, arguments.memory)
    os.environ["DGT_CACHE"] = str(cache(task, arguments))
    # The memory of a process before it loads the graph: libraries and compiled code.
    step_of(task, load(SMALL))()
    base = memory("VmRSS")
    data = load(SIZES[task["size"]])
    nodes, edges = data.num_nodes, data.edge_index.size(1) // 2
    start = time.perf_counter()
    step = step_of(task, data)
    seconds = time.perf_counter() - start
    del data
    found = measure(step, arguments.rounds, arguments.threads, arguments.most_seconds)
    facts = {"nodes": nodes, "edges": edges, "base_bytes": base, "setup_seconds": seconds}
    return {**facts, **found}


def step_of(task: dict[str, Any], data: Data) -> Callable[[], None]:
    """Returns a function that runs a training step on a graph."""
    torch.manual_seed(0)
    config = Config.of("dgt").replace(length=task["length"])
    train = random_split(data.y, 0)[0].nonzero().squeeze(1)
    model, inputs = setup(task["model"], task["form"], data, config)
    y = data.y[train]
    own = {"nodes": train} if task["model"] in summary.PREPARED else {}
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        logits = model(**inputs, **own)
        F.cross_entropy(logits if own else logits[train], y).backward()
        optimizer.step()

    return step


def cache(task: dict[str, Any], arguments: argparse.Namespace) -> Path:
    return arguments.out / "cache" / f"{task['size']}-{task['model']}-{task['length']}"


if __name__ == "__main__":
    main()
