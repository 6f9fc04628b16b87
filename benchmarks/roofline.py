"""Estimates the time of deformable attention on GPUs from the generated code.

``python benchmarks/roofline.py`` compiles the Triton kernels for sm_80, counts their memory traffic
and arithmetic per query (``traffic.py``), and divides by the bandwidth and the peak of each card.
No GPU is needed, and nothing is measured: the times are estimates, of one attention layer without
the linear layers around it. The true time lies above the larger of memory and arithmetic. Memory
has two bounds: without any reuse of rows by the cache, and with every row fetched once.
"""

import argparse
import json
from typing import Any, NamedTuple

import torch

from dgt.data.synthetic import SIZES
from generated import Launch, Problem, compiled, launches
from traffic import Traffic, minimum, per_query

TARGET = "sm_80"
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Card(NamedTuple):
    bandwidth: float
    """Bytes per second."""
    peak: float
    """Operations in single precision per second; a fused product and sum counts as two."""


CARDS = {"A100": Card(1555e9, 19.5e12), "RTX 4090": Card(1008e9, 82.6e12)}
GRAPHS = ("arxiv", "twitch", "reddit")
STEPS = ("forward", "backward")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--length", type=int, default=64, help="length L of the sequences")
    parser.add_argument("--criteria", type=int, default=3, help="number of criteria T")
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--keys", type=int, default=4)
    parser.add_argument("--channels", type=int, default=64, help="channels of all heads together")
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    return parser.parse_args()


def fetched_once(launch: Launch, traffic: Traffic, step: str) -> float:
    """Returns the bytes per query if every row of values is fetched once, not once per query, and
    every row of their gradients is read and written once."""
    sizes = launch.constants
    row = sizes["T"] * sizes["M"] * sizes["D"]
    values = launch.inputs[1 if step == "backward" else 0].element_size() * row
    sums = 2 * max(values, 4 * row) if step == "backward" else 0
    return traffic.bytes - sizes["L"] * values - traffic.atomics + values + sums


def estimate(problem: Problem) -> list[dict[str, Any]]:
    """Returns a row of figures for each card, graph and step; times are in seconds."""
    found = launches(problem)
    rows = []
    for step in STEPS:
        launch = found[step]
        traffic = per_query(step, launch, compiled(launch, TARGET).ttgir)
        least = fetched_once(launch, traffic, step)
        for name, card in CARDS.items():
            for graph in GRAPHS:
                N = SIZES[graph].nodes
                rows.append(
                    {
                        "card": name,
                        "graph": graph,
                        "step": step,
                        "bytes_per_query": traffic.bytes,
                        "minimum_per_query": minimum(step, launch),
                        "operations_per_query": traffic.operations,
                        "no_reuse": N * traffic.bytes / card.bandwidth,
                        "full_reuse": N * least / card.bandwidth,
                        "arithmetic": N * traffic.operations / card.peak,
                    }
                )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Returns the figures as a Markdown table, in milliseconds."""
    kinds = ("no_reuse", "full_reuse", "arithmetic")
    names = {"no_reuse": "no reuse", "full_reuse": "full reuse", "arithmetic": "arithmetic"}
    head = ["graph", "card", *(f"{step}, {names[kind]}" for step in STEPS for kind in kinds)]
    lines = [head, ["---"] * len(head)]
    for graph in GRAPHS:
        for card in CARDS:
            found = {r["step"]: r for r in rows if (r["graph"], r["card"]) == (graph, card)}
            times = (1000 * found[step][kind] for step in STEPS for kind in kinds)
            lines.append([graph, card, *(f"{time:.2f}" for time in times)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    args = parse()
    problem = Problem(
        T=args.criteria,
        M=args.heads,
        K=args.keys,
        D=args.channels // args.heads,
        L=args.length,
        dtype=DTYPES[args.dtype],
    )
    rows = estimate(problem)
    if args.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{problem}\n")
    for step in STEPS:
        row = next(r for r in rows if r["step"] == step)
        ratio = row["bytes_per_query"] / row["minimum_per_query"]
        print(
            f"{step}: {row['bytes_per_query']:,} bytes per query, {ratio:.2f} times the minimum; "
            f"{row['operations_per_query']:,} operations"
        )
    print(f"\nTimes in milliseconds, an estimate from the counts above:\n\n{table(rows)}")


if __name__ == "__main__":
    main()
