"""What the checks of operators' inputs cost: the training step of DGT with and without them.

Steps with and without checks alternate in one process, so that both see the same machine. A step
is that of ``epoch.py``. The share is the median of the CPU times of the steps with checks, divided
by that of the steps without, minus 1. CPU time is used since it hardly depends on other processes.
"""

import argparse
import contextlib
import json
import statistics
import time
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table

from dgt.config import Config
from dgt.data import load
from dgt.nn import build
from dgt.ops.checks import Check
from dgt.prepare import prepare

GRAPHS = ("cora", "synthetic:nodes=100000,edges=700000,features=128,classes=40")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graphs", nargs="+", default=GRAPHS)
    parser.add_argument("--rounds", type=int, default=200, help="steps of each kind on Cora")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    results = {graph: compare(graph, arguments.rounds) for graph in arguments.graphs}
    if arguments.json:
        print(json.dumps({"threads": arguments.threads, "results": results}, indent=2))
        return
    table = Table("graph", "steps", "ms with checks", "ms without", "share")
    for graph, row in results.items():
        times = (f"{1000 * row[name]:.2f}" for name in ("with", "without"))
        table.add_row(graph, str(row["steps"]), *times, f"{row['share']:+.2%}")
    Console().print(table)


def compare(graph: str, rounds: int) -> dict[str, float]:
    """Returns the median CPU seconds of a step with and without checks."""
    torch.manual_seed(0)
    config, data = Config.of("dgt"), load(graph)
    inputs = prepare(data, config)
    encoding = inputs["encoding"]
    model = build(
        config, data.x.size(1), len(data.class_names), 0 if encoding is None else encoding.size(1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def step() -> float:
        started = time.process_time()
        optimizer.zero_grad()
        F.cross_entropy(model(**inputs), data.y).backward()
        optimizer.step()
        return time.process_time() - started

    # Large graphs vary less from step to step.
    rounds = max(10, rounds * 2708 // max(2708, data.num_nodes))
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    for number in range(rounds + 3):
        for name in ("with", "without") if number % 2 else ("without", "with"):
            with unchecked() if name == "without" else contextlib.nullcontext():
                taken = step()
            if number >= 3:  # the first ones compile and fill caches
                seconds[name].append(taken)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    return {"steps": rounds, **medians, "share": medians["with"] / medians["without"] - 1}


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Switches the checks off."""
    # A mock is slow to call.
    before, Check.__call__ = Check.__call__, lambda check, inputs: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        Check.__call__ = before  # type: ignore[method-assign]


if __name__ == "__main__":
    main()
