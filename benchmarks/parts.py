"""Ablation study: which parts of DGT matter on each graph, and what its keys learn.

Each ablation removes one part of a preset: the features, the Katz encoding, all criteria but one,
attention as a whole (each node reads only itself), the learning of offsets and attention (all nodes
keep the initial, evenly spread keys), or the spacing of sequences by score. Accuracies are means
over the first published splits, on validation nodes. For the keys of the whole model, the benchmark
reports how far they have moved from their initial positions, how much they differ between nodes,
and how often two keys of a head are closer than half a position.
"""

import argparse
import json
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from dgt.config import DEFAULT_CRITERIA as CRITERIA
from dgt.config import Config, read_preset
from dgt.data import load
from dgt.data.splits import choose
from dgt.evaluate.classification import accuracy
from dgt.nn import DGT, build
from dgt.nn.level import Level
from dgt.ops.deformable_attention.reference import sample
from dgt.prepare import prepare
from dgt.system.workers import share
from dgt.training.batching import Whole
from dgt.training.loop import fit
from dgt.training.task import Classification

GRAPHS = ("actor", "squirrel", "chameleon", "cora", "citeseer")
PARTS = ("whole", "no features", "no encoding", "no attention", "keys fixed", "by rank", *CRITERIA)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graphs", nargs="+", choices=GRAPHS, default=GRAPHS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    tasks = [
        (graph, part, split)
        for graph in arguments.graphs
        for split in range(arguments.splits)
        for part in PARTS
    ]
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for done, ((graph, part, _), result) in enumerate(share(one, tasks), start=1):
        found.setdefault((graph, part), []).append(result)
        Console(stderr=True).print(f"{done}/{len(tasks)} {graph}, {part}: {result['accuracy']:.1%}")
    means = {
        graph: {part: mean(found[graph, part]) for part in PARTS} for graph in arguments.graphs
    }
    if arguments.json:
        print(json.dumps(means, indent=2))
    else:
        show(means)


def mean(results: list[dict[str, float]]) -> dict[str, float]:
    return {name: sum(r[name] for r in results) / len(results) for name in results[0]}


def one(task: tuple[str, str, int]) -> dict[str, float]:
    graph, part, split = task
    tables = read_preset(graph, "dgt")
    config = Config.from_dict(tables).replace(splits="published", split=split)
    if part in CRITERIA:
        config = config.replace(criteria=(part,))
    if part == "no encoding":
        config = config.replace(encoding="none")
    if part == "by rank":
        config = config.replace(spacing="rank")
    if part == "no attention":
        config = config.replace(length=1)
    data, _ = choose(load(graph, "published"), "published", split)
    inputs = prepare(data, config)
    if part == "no features":
        inputs["x"] = torch.zeros(data.num_nodes, 1)
    x, encoding = inputs["x"], inputs["encoding"]
    assert x is not None
    torch.manual_seed(0)
    classes = int(data.y.max()) + 1
    model = build(config, x.size(1), classes, 0 if encoding is None else encoding.size(1))
    if part == "keys fixed":
        for block in model.blocks:
            block.attention.query.requires_grad_(False)
    start = offsets(model, inputs)
    task = Classification(classes)
    fit(model, Whole(inputs), task, data.y, data.train_mask, data.val_mask, config.train)
    with torch.no_grad():
        right = accuracy(model(**inputs)[data.val_mask], data.y[data.val_mask])
    return {"accuracy": right, **keys(start, offsets(model, inputs), inputs["sequences"])}


@torch.no_grad()
def offsets(model: DGT, inputs: dict[str, Tensor | None]) -> Tensor:
    """Returns the positions of the keys of the last block, from 0, the node itself, to 1. Shape:
    ``(N, T, M, K)``."""
    model.eval()
    z = model.embed(inputs["x"], inputs["encoding"])
    for block in model.blocks[:-1]:
        z = block(z, Level(inputs["sequences"]))
    last = model.blocks[-1]
    return sample(last.attention.queries(last.norm(z)))[0]


def keys(start: Tensor, end: Tensor, sequences: Tensor | None) -> dict[str, float]:
    """Summarizes how training has changed the keys; distances are in positions of the sequences."""
    assert sequences is not None
    scale = (sequences >= 0).sum(2).t()[:, :, None, None] - 1  # (N, T, 1, 1)
    moved = ((end - start).abs() * scale).mean()
    between_nodes = (end.std(0) * scale.float().mean()).mean()
    position = end * scale
    gaps = (position[..., :, None] - position[..., None, :]).abs()
    pairs = torch.triu_indices(end.size(3), end.size(3), 1)
    close = (gaps[..., pairs[0], pairs[1]] < 0.5)[(scale > 0).expand_as(end)[..., 0]].double()
    return {
        "moved": moved.item(),
        "between_nodes": between_nodes.item(),
        "close": close.mean().item() if close.numel() else 0.0,
    }


def show(means: dict[str, Any]) -> None:
    accuracies = Table("graph", *PARTS)
    for graph, parts in means.items():
        accuracies.add_row(graph, *(f"{100 * parts[p]['accuracy']:.1f}" for p in PARTS))
    moves = Table("graph", "keys moved by", "differ between nodes by", "pairs within half")
    for graph, parts in means.items():
        whole = parts["whole"]
        moves.add_row(
            graph,
            f"{whole['moved']:.2f}",
            f"{whole['between_nodes']:.2f}",
            f"{whole['close']:.0%}",
        )
    Console().print(accuracies, moves)


if __name__ == "__main__":
    main()
