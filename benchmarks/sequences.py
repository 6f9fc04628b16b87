"""Speed and recall of node sequences.

The default graph is a power-law graph with the size of ogbn-arxiv. BFS sequences are computed for
all nodes. PageRank sequences are computed for a sample of base nodes, in turn with PyG's
``get_ppr`` at the same alpha, tolerance and number of threads, and the time for all nodes is
extrapolated. Both are compared with exact scores (conjugate gradients on the sparse system): a node
counts as found if its exact score is not below that of the exact 64th. All code is compiled
beforehand, on a small graph.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import scipy.sparse
import torch
from rich.console import Console
from rich.table import Table
from scipy.sparse.linalg import cg
from torch_geometric.data import Data
from torch_geometric.utils.ppr import get_ppr

from dgt.config import SequenceConfig
from dgt.data.matrices import adjacency
from dgt.data.synthetic import Recipe, synthetic
from dgt.sequences import node_sequences
from dgt.sequences.ppr import default_tolerance, ppr_sequences
from dgt.sequences.tie_order import order_nodes

ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=169_343)
    parser.add_argument("--edges", type=int, default=1_166_243, help="undirected edges")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--tolerance", type=float, help="unset: the default for the length")
    parser.add_argument("--sample", type=int, default=1000, help="base nodes timed for PageRank")
    parser.add_argument(
        "--exact", type=int, default=100, help="number of them compared with exact scores"
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    numba.set_num_threads(min(arguments.threads, numba.config.NUMBA_NUM_THREADS))

    results = measure(arguments)
    if arguments.json:
        print(json.dumps(results, indent=2))
    else:
        show(results)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    small = synthetic(Recipe(nodes=500, edges=2000, features=1))
    node_sequences(small, ["bfs", "ppr"], arguments.length)
    get_ppr(small.edge_index, target=torch.arange(4), num_nodes=500)

    data = synthetic(Recipe(nodes=arguments.nodes, edges=arguments.edges, features=1))
    bfs = min(
        timed(lambda: node_sequences(data, ["bfs"], arguments.length))[0] for _ in range(ROUNDS)
    )
    return {
        "nodes": arguments.nodes,
        "edges": arguments.edges,
        "length": arguments.length,
        "threads": arguments.threads,
        "bfs": {"seconds": bfs, "seconds_per_100k_nodes": bfs / arguments.nodes * 1e5},
        "ppr": measure_ppr(data, arguments),
    }


def measure_ppr(data: Data, arguments: argparse.Namespace) -> dict[str, Any]:
    alpha, length = SequenceConfig.ppr_alpha, arguments.length
    tolerance = arguments.tolerance or default_tolerance(length)
    sample = np.random.default_rng(1).choice(arguments.nodes, arguments.sample, replace=False)

    def ours(bases: np.ndarray) -> np.ndarray:
        graph = order_nodes(adjacency(data.edge_index, data.num_nodes))
        return ppr_sequences(graph, length, alpha, tolerance, lambda done: None, bases)[0]

    def pyg(bases: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        target = torch.from_numpy(bases)
        return get_ppr(data.edge_index, alpha, tolerance, target, data.num_nodes)

    # In turn, so that both see the same load of the machine. The time for one base node is the
    # setup time, which all nodes share.
    seconds: dict[str, list[float]] = {"ours": [], "pyg": []}
    results = {}
    for _ in range(ROUNDS):
        for name, method in (("ours", ours), ("pyg", pyg)):
            ready, _ = timed(lambda: method(sample[:1]))  # noqa: B023
            whole, results[name] = timed(lambda: method(sample))  # noqa: B023
            seconds[name].append(ready + (whole - ready) * arguments.nodes / len(sample))
    checked = sample[: arguments.exact]
    scores = exact_scores(data, checked, alpha)
    return {
        "alpha": alpha,
        "tolerance": tolerance,
        "base_nodes": len(sample),
        "seconds_all_nodes": statistics.median(seconds["ours"]),
        "pyg_seconds_all_nodes": statistics.median(seconds["pyg"]),
        "times_faster_than_pyg": statistics.median(
            theirs / own for own, theirs in zip(seconds["ours"], seconds["pyg"], strict=True)
        ),
        "recall": recall(scores, results["ours"]),
        "pyg_recall": recall(scores, top_nodes(*results["pyg"], checked, length)),
        "exact_base_nodes": len(checked),
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def exact_scores(data: Data, bases: np.ndarray, alpha: float) -> np.ndarray:
    """Computes π = D y with (D − (1 − α) A) y = α e_b; the base node itself gets infinity.

    Returns:
        float64. Shape: ``(B, N)`` for B base nodes.
    """
    A = adjacency(data.edge_index, data.num_nodes)
    degrees = np.maximum(A.sum(axis=1), 1)
    matrix = scipy.sparse.diags_array(degrees) - (1 - alpha) * A
    jacobi = scipy.sparse.diags_array(1 / degrees)
    scores = np.empty((len(bases), data.num_nodes))
    for row, base in enumerate(bases):
        unit = np.zeros(data.num_nodes)
        unit[base] = alpha
        y, failed = cg(matrix.tocsr(), unit, rtol=1e-13, M=jacobi)
        assert not failed
        scores[row] = degrees * y
        scores[row, base] = np.inf
    return scores


def recall(scores: np.ndarray, sequences: np.ndarray) -> float:
    """Returns the share of the exact top nodes that were found, over base nodes with enough of
    them."""
    length = sequences.shape[1]
    shares = []
    for exact, row in zip(scores, sequences, strict=False):
        least = np.partition(exact, -length)[-length]
        if least > 1e-12:
            shares.append((exact[row[row >= 0]] >= least - 1e-12).sum() / length)
    return float(np.mean(shares))


def top_nodes(
    edges: torch.Tensor, weights: torch.Tensor, bases: np.ndarray, length: int
) -> np.ndarray:
    """Returns the sequences in the result of ``get_ppr``."""
    sequences = np.full((len(bases), length), -1)
    for row, base in enumerate(bases):
        own = edges[0] == base
        nodes = edges[1, own][torch.argsort(weights[own], descending=True, stable=True)]
        nodes = np.concatenate([[base], nodes[nodes != base].numpy()])[:length]
        sequences[row, : len(nodes)] = nodes
    return sequences


def show(results: dict[str, Any]) -> None:
    bfs, ppr = results["bfs"], results["ppr"]
    console = Console()
    console.print(
        f"{results['nodes']:,} nodes, {results['edges']:,} undirected edges, "
        f"length {results['length']}, {results['threads']} threads"
    )
    table = Table("sequences", "seconds for all nodes", "per 100,000", "recall")
    rows = [
        ("BFS", bfs["seconds"], "exact"),
        ("PPR", ppr["seconds_all_nodes"], f"{ppr['recall']:.4f}"),
        ("PPR, PyG's get_ppr", ppr["pyg_seconds_all_nodes"], f"{ppr['pyg_recall']:.4f}"),
    ]
    for name, seconds, quality in rows:
        table.add_row(name, f"{seconds:.2f}", f"{seconds / results['nodes'] * 1e5:.2f}", quality)
    console.print(table)
    console.print(
        f"PPR: {ppr['times_faster_than_pyg']:.1f} times faster than PyG's get_ppr at tolerance "
        f"{ppr['tolerance']:g}, from {ppr['base_nodes']:,} base nodes"
    )


if __name__ == "__main__":
    main()
