"""Time and memory of preparing the inputs of DGT, in steps of its training.

Synthetic graphs with ten edges per node and 128 features, and the sizes of the large benchmarks,
are sorted by BFS, PageRank and similarity, without a cache. Each size runs in its own process. All
code is compiled beforehand. Steps are those of ``peers.py``, in the same process. On a busy
machine, CPU seconds, those of all threads, vary less than seconds.

With ``--sample``, each criterion sorts only so many base nodes, and the time for all of them is
extrapolated; set-ups run in full. To compare with another version of ``dgt``, run the command with
its ``src`` first in ``PYTHONPATH`` and another ``OUT``.

With ``--cores N``, the shares of N threads run one after another, each on a core of its own, so
that other work on the machine does not matter. The time on N free cores is then that of the largest
share of each loop, and of what is not in a loop; limits of the memory's bandwidth are left out.

Each finished size is appended to ``OUT/preparation.jsonl`` and not repeated: after Ctrl-C or a
crash, the same command resumes.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Data

from cases import finish, parser_of
from dgt.config import CRITERIA, Config
from dgt.data import load
from dgt.data.splits import random_split
from dgt.encodings.make import make_columns
from dgt.nn import build
from dgt.sequences.criterion import Graph
from dgt.system import threads
from measure import in_own_process, limit, memory, reset_peak
from peers import SIZES, SWEEP, WARM_UP

NAMES = ("bfs", "ppr", "similarity")
ROUNDS = 3
# Targets: steps of training, by size; the slope of the time; and the memory for a million nodes.
MOST_STEPS = {"100k": 25, "arxiv": 25, "twitch": 25, "1M": 40}
MOST_SLOPE = 1.12
MOST_BYTES = {"1M": 6e9}


def main() -> None:
    parser = parser_of(__doc__, "preparation")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=("30k", "100k", "300k"))
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--sample", type=int, help="base nodes to sort (default: all)")
    parser.add_argument("--cores", type=int, help="estimate the time on so many free cores")
    arguments = parser.parse_args()
    common = {name: getattr(arguments, name) for name in ("length", "threads", "sample", "cores")}
    asked = [{"size": size, **common} for size in SIZES if size in arguments.sizes]

    def compile_all(missing: Sequence[dict[str, Any]]) -> None:
        in_own_process(one, {**missing[0], "size": ""}, arguments)

    rows = finish(asked, one, arguments, "preparation.jsonl", said, compile_all)
    rows = [row for row in rows if "failed" not in row]
    results = {"sizes": rows, "slope": slope(rows)}
    if arguments.json:
        print(json.dumps(results, indent=2))
    else:
        show(results)


def said(row: dict[str, Any]) -> str:
    return f"{row['seconds']:.1f} s, {row['cpu_seconds']:.1f} CPU seconds"


def one(case: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    limit(arguments.threads, arguments.memory)
    data = load(SIZES[case["size"]] if case["size"] else WARM_UP)
    config = Config.of("dgt").replace(criteria=NAMES, length=case["length"])
    phases: dict[str, tuple[float, float]] = {}
    free: dict[str, float] = {}
    saved: list[float] = []
    run = threads.run
    if case.get("cores"):
        threads.run = partial(in_turn, case["cores"], saved)

    def timed(phase: str, work: Callable[..., Any], *given: Any, times: float = 1.0) -> Any:
        saved.clear()
        start, start_cpu = time.perf_counter(), time.process_time()
        result = work(*given)
        seconds = time.perf_counter() - start, time.process_time() - start_cpu
        phases[phase] = times * seconds[0], times * seconds[1]
        free[phase] = times * (seconds[1] - sum(saved))
        return result

    reset_peak()
    graph, sequences = Graph(data), []
    bases = range(min(case["sample"] or data.num_nodes, data.num_nodes))
    times = data.num_nodes / len(bases)
    timed("order of the nodes", getattr, graph, "ordered")
    for name in NAMES:
        begin = CRITERIA.record(name).begin
        sort = timed(f"{name}, set-up", begin, graph, config.sequences, None)
        own, _ = timed(name, sort, bases, lambda done: None, times=times)
        if times > 1:  # any sequences, for the time of a step
            shape = (data.num_nodes, case["length"])
            own = np.random.default_rng(0).integers(0, data.num_nodes, shape, dtype=np.int32)
        sequences.append(own)
        del sort
    columns, _ = timed("encoding", make_columns, data, config.encoding, None)
    peak = memory("VmHWM")
    threads.run = run
    del graph
    step = step_seconds(data, config, torch.from_numpy(np.stack(sequences)), columns)
    total, total_cpu = (sum(each) for each in zip(*phases.values(), strict=True))
    return {
        "nodes": data.num_nodes,
        "phases": phases,
        "free_core_seconds": free if case.get("cores") else None,
        "seconds": total,
        "cpu_seconds": total_cpu,
        "step_seconds": step[0],
        "step_cpu_seconds": step[1],
        "peak_bytes": peak,
    }


def in_turn(
    cores: int, saved: list[float], function: Callable[..., Any], tasks: int, *arguments: Any
) -> list[Any]:
    """Replaces :func:`dgt.system.threads.run`: runs the shares of ``cores`` threads one after
    another, and adds to ``saved`` the seconds that it would save to run them at the same time."""
    results, seconds = [], []
    shares = max(1, min(cores, tasks))
    for share in range(shares):
        start = time.process_time()
        results.append(function(share, shares, *arguments))
        seconds.append(time.process_time() - start)
    saved.append(sum(seconds) - max(seconds))
    return results


def step_seconds(
    data: Data, config: Config, sequences: torch.Tensor, encoding: torch.Tensor
) -> tuple[float, float]:
    """Returns the median seconds and CPU seconds of a training step."""
    torch.manual_seed(0)
    model = build(config, data.num_features, int(data.y.max()) + 1, encoding.size(1))
    nodes = random_split(data.y, 0)[0].nonzero().squeeze(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)
    times = []
    for _ in range(1 + ROUNDS):
        start, start_cpu = time.perf_counter(), time.process_time()
        optimizer.zero_grad()
        logits = model(x=data.x, sequences=sequences, encoding=encoding, nodes=nodes)
        F.cross_entropy(logits, data.y[nodes]).backward()
        optimizer.step()
        times.append((time.perf_counter() - start, time.process_time() - start_cpu))
    seconds, cpu = zip(*times[1:], strict=True)
    return statistics.median(seconds), statistics.median(cpu)


def slope(rows: list[dict[str, Any]]) -> float | None:
    """Returns the exponent with which CPU seconds grow with the number of nodes."""
    own = [row for row in rows if row["size"] in SWEEP]
    if len(own) < 2:
        return None
    nodes, seconds = (np.log([row[name] for row in own]) for name in ("nodes", "cpu_seconds"))
    return float(np.polyfit(nodes, seconds, 1)[0])


def show(results: dict[str, Any]) -> None:
    console, rows = Console(), results["sizes"]
    table = Table("seconds (CPU seconds)", *(row["size"] for row in rows))
    for phase in rows[0]["phases"] if rows else ():
        cells = (row["phases"][phase] for row in rows)
        table.add_row(phase, *(f"{seconds:.1f} ({cpu:.1f})" for seconds, cpu in cells))
    for name, prefix in (("total", ""), ("a training step", "step_")):
        cells = ((row[f"{prefix}seconds"], row[f"{prefix}cpu_seconds"]) for row in rows)
        table.add_row(name, *(f"{seconds:.1f} ({cpu:.1f})" for seconds, cpu in cells))
    console.print(table)
    for row in rows:
        steps, cpu = (row[f"{by}seconds"] / row[f"step_{by}seconds"] for by in ("", "cpu_"))
        most, room = MOST_STEPS.get(row["size"]), MOST_BYTES.get(row["size"])
        text = f"{row['size']}: {steps:.1f} steps, by CPU seconds {cpu:.1f}"
        text += "" if most is None else f" (target: at most {most})"
        text += f"; peak memory {row['peak_bytes'] / 1e9:.2f} GB"
        console.print(text + ("" if room is None else f" (target: below {room / 1e9:.0f} GB)"))
        if row.get("cores"):
            console.print(on_free_cores(row))
    if results["slope"] is not None:
        grows = f"CPU seconds grow as N^{results['slope']:.2f}"
        console.print(f"{grows} (target: at most N^{MOST_SLOPE})")


def on_free_cores(row: dict[str, Any]) -> str:
    """Says how busy free cores would be, by phase."""
    cores, free = row["cores"], row["free_core_seconds"]
    work = {phase: cpu for phase, (_, cpu) in row["phases"].items()}
    idle = {phase: cores * free[phase] - work[phase] for phase in work}
    total = sum(free.values())
    parts = (f"{phase} {seconds:.1f}" for phase, seconds in idle.items() if seconds >= 0.05)
    return (
        f"{row['size']}, {cores} free cores: {total:.1f} s, idle for {sum(idle.values()):.1f} of "
        f"{cores * total:.1f} core seconds: {', '.join(parts)}"
    )


if __name__ == "__main__":
    main()
