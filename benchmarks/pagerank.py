"""PageRank sequences compared with PyG's ``get_ppr`` on the same base nodes: time and recall.

The graph is synthetic, with a million edges by default. Recall is the share of the first nodes by
exact scores (power iteration) among the first nodes that are found; nodes with the score of the
last of them count, too. Ours sorts all nodes, PyG's a sample of them, whose time is extrapolated.
CPU seconds of one thread. All code is compiled beforehand.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Data
from torch_geometric.utils import get_ppr

from dgt.config import CRITERIA, SequenceConfig
from dgt.data import load
from dgt.data.matrices import adjacency
from dgt.sequences.criterion import Graph
from peers import WARM_UP

STEPS = 110


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--graph", default="synthetic:nodes=100000,edges=1000000,classes=40")
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--sample", type=int, default=60, help="base nodes of PyG's and of recall")
    parser.add_argument(
        "--tolerances", type=float, nargs="+", default=[1e-4, 1e-5, 1e-6], help="of PyG's"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    settings = SequenceConfig(length=arguments.length)
    data = load(arguments.graph)
    random = np.random.default_rng(0)
    bases = np.sort(random.choice(data.num_nodes, arguments.sample, replace=False))
    exact = scores(data, bases, settings.ppr_alpha)
    rows = [{"method": "dgt", **ours(data, bases, exact, settings)}]
    for tolerance in arguments.tolerances:
        peer = pyg(data, bases, exact, tolerance, settings.length)
        rows.append({"method": f"get_ppr, {tolerance:g}", **peer})
    if arguments.json:
        print(json.dumps({"settings": vars(arguments), "results": rows}, indent=2))
        return
    table = Table("method", "CPU seconds for all nodes", "ratio", "recall")
    for row in rows:
        ratio = row["seconds"] / rows[0]["seconds"]
        table.add_row(
            row["method"], f"{row['seconds']:,.1f}", f"{ratio:.1f}", f"{row['recall']:.4f}"
        )
    Console().print(table)


def scores(data: Data, bases: np.ndarray, alpha: float) -> np.ndarray:
    """Returns the exact scores of all nodes for each base node. Shape: ``(N, bases)``."""
    A = adjacency(data.edge_index, data.num_nodes)
    walk = A.T.multiply(1 / np.maximum(A.sum(axis=1), 1)).tocsr()
    start = np.zeros((data.num_nodes, len(bases)))
    start[bases, np.arange(len(bases))] = 1
    found = start
    for _ in range(STEPS):
        found = alpha * start + (1 - alpha) * (walk @ found)
    return found


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    return work(), time.process_time() - start


def recall(found: list[np.ndarray], exact: np.ndarray, length: int) -> float:
    """Returns the mean share of the first nodes that were found."""
    last = np.sort(exact, axis=0)[-length]
    shares = [(exact[own, k] >= last[k]).sum() / length for k, own in enumerate(found)]
    return float(np.mean(shares))


def ours(
    data: Data, bases: np.ndarray, exact: np.ndarray, settings: SequenceConfig
) -> dict[str, float]:
    begin = CRITERIA.record("ppr").begin
    begin(Graph(load(WARM_UP)), settings, None)(range(100), lambda done: None)
    graph = Graph(data)
    sort, before = timed(lambda: begin(graph, settings, None))
    (sequences, _), seconds = timed(lambda: sort(range(data.num_nodes), lambda done: None))
    found = [row[row >= 0] for row in sequences[bases]]
    return {"seconds": before + seconds, "recall": recall(found, exact, settings.length)}


def pyg(
    data: Data, bases: np.ndarray, exact: np.ndarray, tolerance: float, length: int
) -> dict[str, float]:
    def run(targets: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        alpha, N = SequenceConfig.ppr_alpha, data.num_nodes
        return get_ppr(data.edge_index, alpha, tolerance, torch.from_numpy(targets), N)

    run(bases[:1])  # compiles
    _, one = timed(lambda: run(bases[:1]))
    (edges, weights), every = timed(lambda: run(bases))
    pairs, weights = edges.numpy(), weights.numpy()
    base = 0 if set(pairs[0]) <= set(bases) else 1
    found = []
    for node in bases:
        at = pairs[base] == node
        order = np.argsort(-weights[at], kind="stable")[:length]
        found.append(pairs[1 - base][at][order])
    seconds = one + (every - one) * data.num_nodes / (len(bases) - 1)
    return {"seconds": seconds, "recall": recall(found, exact, length)}


if __name__ == "__main__":
    main()
