"""Time to accuracy: from the edges of a graph in memory to a trained model, preparation included.

DGT, DGT-light and peers train on the same synthetic graphs, with the sizes of ``peers.py``, the
same split (48% training, 32% validation nodes), Adam with a learning rate of 0.01 and the default
weight decays of ``dgt train``. Peers run on a ``torch.sparse`` CSR adjacency matrix, their fastest
form in ``peers.py``. After every step the validation accuracy is computed, and training stops when
it has not improved for 50 steps. The clock starts when the graph is in memory and includes node
sequences and encoding, or the normalized adjacency matrix. All code is compiled beforehand. Every
case runs in its own process, whose peak memory is measured. CPU seconds are those of all threads;
on a busy machine, they vary less than seconds.

Each finished case is appended to ``OUT/end_to_end.jsonl`` and not repeated: after Ctrl-C or a
crash, the same command resumes. The results are written to ``OUT/end_to_end.md`` and
``OUT/end_to_end.png``.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
import torch.nn.functional as F
from rich.console import Console
from torch import Tensor, nn
from torch_geometric.data import Data

import end_to_end_summary as summary
from dgt.config import Config
from dgt.data import load
from dgt.data.splits import random_split
from dgt.prepare import precompute
from dgt.training.loop import parameter_groups
from measure import (
    append_line,
    free_gigabytes,
    in_own_process,
    limit,
    memory,
    read_lines,
    reset_peak,
    where,
)
from models import FORMS, setup
from peers import SIZES, SMALL, WARM_UP

DEFAULT_SIZES = ("10k", "100k", "arxiv", "twitch", "reddit", "1M")
MODELS = ("dgt", "dgt-light", "gcn", "sage", "sgformer", "polynormer")
OWN = ("dgt", "dgt-light")  # models that compute the logits of some nodes only
PATIENCE = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=DEFAULT_SIZES)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--steps", type=int, default=1000, help="most steps")
    parser.add_argument("--most-seconds", type=float, default=7200.0, help="time limit for a case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", type=float, default=free_gigabytes(), help="limit in GB")
    parser.add_argument("--out", type=Path, default=Path("end-to-end"))
    parser.add_argument("--show", action="store_true", help="only show the results so far")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()

    arguments.out.mkdir(parents=True, exist_ok=True)
    record = arguments.out / "end_to_end.jsonl"
    found = {key(row): row for row in read_lines(record)}
    common = {"seed": arguments.seed, "threads": arguments.threads}
    sizes = [size for size in DEFAULT_SIZES if size in arguments.sizes]
    sizes += [size for size in arguments.sizes if size not in sizes]
    asked = [
        {"size": size, "model": model, **common} for size in sizes for model in arguments.models
    ]
    missing = [] if arguments.show else [case for case in asked if key(case) not in found]
    if any(case["model"] in OWN for case in missing):
        in_own_process(compile_sequences, arguments)
    console = Console(stderr=True)
    for done, case in enumerate(missing, start=1):
        row = {**case, **attempt(case, arguments), **where()}
        append_line(record, row)
        found[key(case)] = row
        said = row.get("failed") or summary.said(row)
        console.print(f"{done}/{len(missing)} {case['model']}, {case['size']}: {said}")
    rows = [found[key(case)] for case in asked if key(case) in found]
    results = summary.summarize(rows)
    summary.write(arguments.out, rows, results)
    if arguments.json:
        print(json.dumps({"cases": rows, "checks": results}, indent=2))
    else:
        summary.show(rows, results)


def key(case: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(case[name] for name in ("size", "model", "seed", "threads"))


def compile_sequences(arguments: argparse.Namespace) -> dict[str, Any]:
    """Compiles the methods of large graphs, in a process of its own: their memory must not count.
    Other processes read the compiled code from numba's cache."""
    with tempfile.TemporaryDirectory(dir=arguments.out) as folder:
        precompute(load(WARM_UP), Config.of("dgt"), Path(folder))
    return {}


def attempt(case: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    try:
        return in_own_process(one, case, arguments)
    except (MemoryError, RuntimeError) as error:
        # torch reports a failed allocation as a RuntimeError; BrokenProcessPool is one as well.
        return {"failed": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}


def one(case: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    limit(arguments.threads, arguments.memory)
    with tempfile.TemporaryDirectory(dir=arguments.out) as folder:
        os.environ["DGT_CACHE"] = folder  # empty: nothing is prepared yet
        train(load(SMALL), case, 2, arguments.most_seconds)  # compiles everything else
        data = load(SIZES[case["size"]])
        reset_peak()
        return train(data, case, arguments.steps, arguments.most_seconds)


def train(data: Data, case: dict[str, Any], most: int, most_seconds: float) -> dict[str, Any]:
    """Prepares and trains a model until its validation accuracy stops improving.

    Returns:
        ``prepare_seconds``; ``curve``, for each step the seconds and CPU seconds since the start
        and the validation accuracy; ``test_accuracy``, with the weights of the best step; and
        ``peak_bytes``. ``stopped`` says why training ended.
    """
    masks = random_split(data.y, case["seed"])
    learning, val, test = (mask.nonzero().squeeze(1) for mask in masks)
    started, started_cpu = time.perf_counter(), time.process_time()
    torch.manual_seed(case["seed"])
    config = Config.of("dgt")
    model, inputs = setup(case["model"], FORMS[case["model"]][-1], data, config)
    optimizer = torch.optim.Adam(
        parameter_groups(model, config.train), lr=config.train.lr, fused=True
    )
    prepared, prepared_cpu = time.perf_counter() - started, time.process_time() - started_cpu

    curve: list[tuple[float, float, float]] = []
    best, best_step, weights, stopped = -1.0, 0, {}, "steps"
    for step in range(most):
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(logits(model, inputs, case, learning), data.y[learning]).backward()
        optimizer.step()
        value = accuracy(model, inputs, case, val, data.y)
        now = time.perf_counter() - started
        curve.append((round(now, 3), round(time.process_time() - started_cpu, 3), value))
        if value > best:
            best, best_step = value, step
            weights = {name: weight.clone() for name, weight in model.state_dict().items()}
        if step - best_step >= PATIENCE:
            stopped = "patience"
            break
        if now > most_seconds:
            stopped = "time"
            break
    peak = memory("VmHWM")
    model.load_state_dict(weights)
    return {
        "nodes": data.num_nodes,
        "edges": data.edge_index.size(1) // 2,
        "prepare_seconds": prepared,
        "prepare_cpu_seconds": prepared_cpu,
        "curve": curve,
        "stopped": stopped,
        "test_accuracy": accuracy(model, inputs, case, test, data.y),
        "peak_bytes": peak,
    }


def logits(model: nn.Module, inputs: dict[str, Any], case: dict[str, Any], nodes: Tensor) -> Tensor:
    if case["model"] in OWN:
        return model(**inputs, nodes=nodes)
    return model(**inputs)[nodes]


@torch.no_grad()
def accuracy(
    model: nn.Module, inputs: dict[str, Any], case: dict[str, Any], nodes: Tensor, y: Tensor
) -> float:
    model.eval()
    found = logits(model, inputs, case, nodes).argmax(dim=1)
    return float((found == y[nodes]).double().mean())


if __name__ == "__main__":
    main()
