"""Ablation study of dgt-plus: what each of its parts is worth on each graph.

    python benchmarks/plus_parts.py --out parts.jsonl

Each ablation removes one part of dgt-plus with its defaults, on the published splits. Every
finished run is a line of the file, so that the same command continues where it was stopped. The
table shows the metric of each graph on test nodes: of the whole model, and the difference that
removing a part makes on the same splits, with 95% confidence intervals.
"""

import argparse
import json
import math
import statistics
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from scipy.stats import t as student
from torch import nn

from dgt.config import Config
from dgt.data import load
from dgt.models import build
from dgt.system.workers import share
from dgt.training.loop import fit
from dgt.training.problem import Problem

GRAPHS = (
    *("actor", "squirrel", "chameleon", "cora", "citeseer"),
    *("squirrel-filtered", "chameleon-filtered", "minesweeper", "tolokers"),
)
PARTS = {
    "no attention": "each node reads only itself",
    "keys fixed": "keys, probes and sharpness stay as they start, the same for all nodes",
    "no probe": "weights do not see the values that are read, nor change their sharpness",
    "no closeness": "weights do not see the score of the criterion",
    "no labels": "labels of training nodes are not read",
    "no encoding": "no degrees nor counts",
    "no direction": "edges have no direction",
    "one criterion": "neighbors only",
}
SETTINGS: dict[str, dict[str, Any]] = {
    "no labels": {"labels": "none"},
    "no encoding": {"encoding": "none"},
    "one criterion": {"criteria": ("neighbors",)},
}
DIRECTED = ("actor", "squirrel", "chameleon", "squirrel-filtered", "chameleon-filtered")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("plus-parts.jsonl"))
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=GRAPHS)
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--show", action="store_true", help="train nothing, show what there is")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.out.open()] if given.out.exists() else []
    done = {(row["graph"], row["part"], row["split"]) for row in rows}
    tasks = [
        (graph, part, split)
        for split in range(given.splits)
        for graph in given.graphs
        for part in ("whole", *given.parts)
        if (graph, part, split) not in done and (part != "no direction" or graph in DIRECTED)
    ]
    for task, value in share(one, [] if given.show else tasks):
        rows.append(dict(zip(("graph", "part", "split"), task, strict=True)) | value)
        with given.out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        Console(stderr=True).print(rows[-1])
    show(rows)


def one(task: tuple[str, str, int]) -> dict[str, float]:
    """Trains the model without a part; returns its metric on validation and on test nodes."""
    graph, part, split = task
    config = Config.of("dgt-plus").replace(splits="published", split=split)
    config = config.replace(**SETTINGS.get(part, {}))
    data = load(graph, "published", config.data)
    if part == "no direction":
        data.directed_edge_index = None
    problem = Problem.of(data, config)
    steps = problem.prepare(torch.device("cpu"))
    if part == "no attention":
        steps.given["sequences"][..., 1:] = -1
    if part == "no closeness":
        steps.given["closeness"].zero_()
    task_, facts = problem.task(), problem.facts
    torch.manual_seed(0)
    model = build(problem.config, facts.in_channels, task_.out_channels, facts.encoding_channels)
    y, train_mask, val_mask = problem.targets
    model.start_from(task_.constant(y[train_mask]))
    freeze(model, part)
    fit(model, steps, task_, y, train_mask, val_mask, problem.config.train)
    logits = steps.predict(model).detach()
    masks = {"val": val_mask, "test": problem.data.test_mask}
    return {
        name: task_.measure(logits[mask], y[mask], [task_.metric])[task_.metric]
        for name, mask in masks.items()
    }


def freeze(model: nn.Module, part: str) -> None:
    for block in model.blocks:
        if part in ("keys fixed", "no probe"):
            block.attention.probe.requires_grad_(False)
        if part == "keys fixed":
            block.attention.query.requires_grad_(False)


def show(rows: list[dict[str, Any]]) -> None:
    """Prints the metric of the whole model, and the differences to it."""
    found = {(row["graph"], row["part"], row["split"]): 100 * row["test"] for row in rows}
    table = Table("graph", "whole", *PARTS)
    for graph in GRAPHS:
        splits = sorted(split for g, part, split in found if (g, part) == (graph, "whole"))
        if not splits:
            continue
        cells = [interval([found[graph, "whole", split] for split in splits])]
        for part in PARTS:
            pairs = [(found.get((graph, part, s)), found[graph, "whole", s]) for s in splits]
            cells.append(interval([a - b for a, b in pairs if a is not None]))
        table.add_row(graph, *cells)
    Console(width=160).print(table)


def interval(values: list[float]) -> str:
    """Returns the mean of some values with its 95% confidence interval."""
    if len(values) < 2:
        return f"{values[0]:.2f} (1)" if values else ""
    half = student.ppf(0.975, len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    return f"{statistics.mean(values):.2f}±{half:.2f} ({len(values)})"


if __name__ == "__main__":
    main()
