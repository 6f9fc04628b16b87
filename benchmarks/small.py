"""An epoch of training with validation on Cora, where overhead counts: DGT, DGT-light and dgt-plus
compared with our own GCN.

Each model has the default settings and is trained by the training loop itself, for some epochs at a
time and in turn with the others. Times are CPU milliseconds, the least of all rounds. ``--nodes``
takes a synthetic graph of that size instead, such as 60 nodes, on which nothing remains but the
overhead of Python and PyTorch. ``--profile`` shows where the time of one model goes.
"""

import argparse
import cProfile
import json
import os
import pstats
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile

from dgt.config import Config
from dgt.data import load
from dgt.models import build
from dgt.training.loop import fit
from dgt.training.problem import Problem

MODELS = ("gcn", "dgt-light", "dgt", "dgt-plus")
BARS = {"dgt-light": 2.0, "dgt": 3.0}
"""What an epoch may cost, as a multiple of that of GCN."""
CPU = torch.device("cpu")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--nodes", type=int, help="take a synthetic graph of this size")
    parser.add_argument("--epochs", type=int, default=20, help="epochs per round")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--profile", choices=MODELS, help="profile one model instead")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.profile:
        show_profile(training(arguments.profile, arguments), arguments.epochs)
        return
    work = {name: training(name, arguments) for name in arguments.models}
    least = dict.fromkeys(work, float("inf"))
    for _ in range(arguments.rounds):
        for name, train in work.items():
            start = time.process_time()
            train()
            spent = 1000 * (time.process_time() - start) / arguments.epochs
            least[name] = min(least[name], spent)
    rows = {name: {"milliseconds": spent} for name, spent in least.items()}
    for name, row in rows.items():
        if "gcn" in rows:
            row["ratio"] = least[name] / least["gcn"]
    if arguments.json:
        print(json.dumps({"settings": vars(arguments), "results": rows}, indent=2))
        return
    table = Table("model", "CPU ms per epoch", "ratio to gcn", "bar")
    for name, row in rows.items():
        ratio = f"{row['ratio']:.2f}" if "ratio" in row else ""
        table.add_row(name, f"{row['milliseconds']:.1f}", ratio, str(BARS.get(name, "")))
    Console().print(table)


def training(name: str, arguments: argparse.Namespace) -> Callable[[], Any]:
    """Returns a function that trains a model for some epochs, after a few to warm up."""
    graph = "cora" if arguments.nodes is None else recipe(arguments.nodes)
    problem = Problem.of(load(graph), Config.of(name))
    steps, task = problem.prepare(CPU), problem.task()
    columns = problem.facts.encoding_channels
    torch.manual_seed(0)
    model = build(problem.config, problem.facts.in_channels, task.out_channels, columns)

    def train(epochs: int) -> None:
        config = problem.config.replace(epochs=epochs, patience=epochs).train
        fit(model, steps, task, *problem.targets, config)

    train(3)
    return lambda: train(arguments.epochs)


def recipe(nodes: int) -> str:
    return f"synthetic:nodes={nodes},edges={2 * nodes},features=32,classes=3"


def show_profile(train: Callable[[], Any], epochs: int) -> None:
    """Prints the operators that take the most time, and then the Python functions that do."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        train()
    rows = sorted(profiler.key_averages(), key=lambda row: -row.self_cpu_time_total)
    for row in rows[:40]:
        spent = row.self_cpu_time_total / epochs / 1000
        print(f"{spent:8.3f} ms  {row.count / epochs:6.1f} calls  {row.key}")
    functions = cProfile.Profile()
    functions.runcall(train)
    pstats.Stats(functions).sort_stats("tottime").print_stats(45)


if __name__ == "__main__":
    main()
