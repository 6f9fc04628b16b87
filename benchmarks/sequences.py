"""Speed and recall of node sequences.

The default graph is a power-law graph with the size of ogbn-arxiv. BFS sequences are computed for
all nodes. PageRank sequences are computed for a sample of base nodes, in turn with the method of
small graphs (double precision, without hubs) and with PyG's ``get_ppr``, all at the same alpha and
number of threads, and the CPU time for all nodes is extrapolated. What large graphs need beforehand
is computed for all nodes, and counts. They are compared with exact scores (conjugate gradients on
the sparse system): a node counts as found if its exact score is not below that of the exact last
node by more than 1e-9. PyG's tolerance is halved until it finds as much as ours, or 99%. The recall
of similarity is that of a sample of nodes. All code is compiled beforehand, on a small graph.
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
from dgt.sequences.index import EXACT_NODES
from dgt.sequences.ppr import default_tolerance, known_scores, ppr_sequences
from dgt.sequences.similarity import LARGE_CHUNK, UnitRows, similarity_sequences
from dgt.sequences.tie_order import order_nodes

ROUNDS = 3
SLACK = 1e-9
ENOUGH = 0.99
# The largest and the smallest tolerance tried with PyG.
FIRST, LAST = 1e-5, 1e-8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=169_343)
    parser.add_argument("--edges", type=int, default=1_166_243, help="undirected edges")
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--features", type=int, default=0, help="unset: without similarity")
    parser.add_argument("--tolerance", type=float, help="unset: the default for the length")
    parser.add_argument("--sample", type=int, default=1000, help="base nodes timed for PageRank")
    parser.add_argument("--peers", type=int, default=100, help="base nodes timed for PyG's")
    parser.add_argument(
        "--exact", type=int, default=100, help="number of them compared with exact scores"
    )
    parser.add_argument("--threads", type=int, default=1)
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
    if arguments.nodes <= EXACT_NODES:
        raise SystemExit(f"--nodes: got {arguments.nodes}, expected more than {EXACT_NODES}")
    compile_all(arguments.length)
    features = max(arguments.features, 1)
    data = synthetic(Recipe(nodes=arguments.nodes, edges=arguments.edges, features=features))
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
        "similarity": measure_similarity(data, arguments.length) if arguments.features else None,
    }


def compile_all(length: int) -> None:
    small = synthetic(Recipe(nodes=EXACT_NODES + 1, edges=EXACT_NODES, features=4))
    graph = order_nodes(adjacency(small.edge_index, small.num_nodes))
    one = np.arange(1)
    node_sequences(small, ["bfs"], length)
    alpha = SequenceConfig.ppr_alpha
    for hubs in (None, known_scores(graph, length, alpha, 1e-3)):
        ppr_sequences(graph, length, alpha, 1e-3, lambda done: None, one, hubs=hubs)
    similarity_sequences(UnitRows(small.x.numpy()), length, lambda done: None, range(1))
    get_ppr(small.edge_index, target=torch.arange(4), num_nodes=small.num_nodes)


def measure_ppr(data: Data, arguments: argparse.Namespace) -> dict[str, Any]:
    alpha, length, nodes = SequenceConfig.ppr_alpha, arguments.length, arguments.nodes
    coarse = arguments.tolerance or default_tolerance(length, hubs=True)
    fine = arguments.tolerance or default_tolerance(length)
    sample = np.random.default_rng(1).choice(nodes, arguments.sample, replace=False)
    peers, checked = sample[: arguments.peers], sample[: arguments.exact]
    exact = exact_scores(data, checked, alpha)
    seconds: dict[str, list[float]] = {name: [] for name in ("hubs", "double", "pyg")}
    phases: dict[str, list[float]] = {name: [] for name in ("order", "known", "push")}
    results, recall, eps = {}, {}, FIRST
    # In turn, so that all see the same load of the machine.
    for turn in range(ROUNDS):
        order, graph = timed(lambda: order_nodes(adjacency(data.edge_index, nodes)))
        ready, hubs = timed(lambda: known_scores(graph, length, alpha, coarse))  # noqa: B023
        for name, known, tolerance in (("hubs", hubs, coarse), ("double", None, fine)):
            push, (results[name], _) = timed(
                lambda: ppr_sequences(
                    graph,  # noqa: B023
                    length,
                    alpha,
                    tolerance,  # noqa: B023
                    lambda done: None,
                    sample,
                    hubs=known,  # noqa: B023
                )
            )
            push *= nodes / len(sample)
            seconds[name].append(order + push + (ready if name == "hubs" else 0.0))
            if name == "hubs":
                for phase, value in zip(phases, (order, ready, push), strict=True):
                    phases[phase].append(value)
        if turn == 0:
            recall = {name: ppr_recall(exact, own) for name, own in results.items()}
            eps, recall["pyg"] = pyg_tolerance(data, checked, length, exact, recall["hubs"])
        # The time for one base node is the setup time, which all nodes share.
        first, _ = timed(lambda: pyg_ppr(data, peers[:1], eps))  # noqa: B023
        whole, _ = timed(lambda: pyg_ppr(data, peers, eps))  # noqa: B023
        seconds["pyg"].append(first + (whole - first) * nodes / len(peers))
    return {
        "alpha": alpha,
        "tolerance": {"hubs": coarse, "double": fine, "pyg": eps},
        "base_nodes": len(sample),
        "hubs": len(hubs.nodes),
        "seconds_by_phase": {name: min(own) for name, own in phases.items()},
        "seconds_all_nodes": {name: min(own) for name, own in seconds.items()},
        "times_faster": {
            name: statistics.median(
                theirs / own for own, theirs in zip(seconds["hubs"], seconds[name], strict=True)
            )
            for name in ("double", "pyg")
        },
        "recall": recall,
        "exact_base_nodes": len(checked),
    }


def pyg_tolerance(
    data: Data, bases: np.ndarray, length: int, exact: np.ndarray, wanted: float
) -> tuple[float, float]:
    """Returns the largest tolerance with which PyG finds enough, and the share that it finds."""
    eps = FIRST
    while True:
        recall = ppr_recall(exact, top_nodes(*pyg_ppr(data, bases, eps), bases, length))
        if recall >= min(wanted, ENOUGH) or eps / 2 < LAST:
            return eps, recall
        eps /= 2


def pyg_ppr(data: Data, bases: np.ndarray, tolerance: float) -> tuple[torch.Tensor, torch.Tensor]:
    target = torch.from_numpy(bases)
    return get_ppr(data.edge_index, SequenceConfig.ppr_alpha, tolerance, target, data.num_nodes)


def measure_similarity(data: Data, length: int) -> dict[str, Any]:
    lists, rows = timed(lambda: UnitRows(data.x.numpy()))
    assert rows.near is not None
    choice, chosen = timed(lambda: rows.near.chosen(length))
    bases = range(min(LARGE_CHUNK, data.num_nodes))
    search, _ = timed(lambda: similarity_sequences(rows, length, lambda done: None, bases))
    search *= data.num_nodes / len(bases)
    return {
        "features": data.num_features,
        "seconds_by_phase": {"lists": lists, "choice": choice, "search": search},
        "seconds_all_nodes": lists + choice + search,
        "recall": chosen.recall,
    }


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


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


def ppr_recall(scores: np.ndarray, sequences: np.ndarray) -> float:
    """Returns the share of the exact top nodes that were found, over base nodes with enough of
    them."""
    length = sequences.shape[1]
    shares = []
    for exact, row in zip(scores, sequences, strict=False):
        least = np.partition(exact, -length)[-length]
        if least > 1e-12:
            shares.append((exact[row[row >= 0]] >= least - SLACK).sum() / length)
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
    bfs, ppr, similarity = results["bfs"], results["ppr"], results["similarity"]
    console = Console()
    console.print(
        f"{results['nodes']:,} nodes, {results['edges']:,} undirected edges, "
        f"length {results['length']}, {results['threads']} threads"
    )
    table = Table("sequences", "CPU seconds for all nodes", "per 100,000", "recall")
    rows = [("BFS", bfs["seconds"], "exact")]
    for name, title in (("hubs", ""), ("double", ", as for small graphs"), ("pyg", ", PyG")):
        quality = f"{ppr['recall'][name]:.4f}"
        rows.append((f"PPR{title}", ppr["seconds_all_nodes"][name], quality))
    if similarity:
        quality = f"{similarity['recall']:.4f}"
        rows.append(("similarity", similarity["seconds_all_nodes"], quality))
    for name, seconds, quality in rows:
        table.add_row(name, f"{seconds:.2f}", f"{seconds / results['nodes'] * 1e5:.2f}", quality)
    console.print(table)
    for name, part in (("PPR", ppr), ("similarity", similarity)):
        if part:
            phases = part["seconds_by_phase"].items()
            console.print(f"{name}: " + ", ".join(f"{key} {value:.2f} s" for key, value in phases))
    faster = ppr["times_faster"]
    console.print(
        f"PPR: {faster['double']:.1f} times faster than for small graphs and {faster['pyg']:.1f} "
        f"times faster than PyG's get_ppr, at tolerances {ppr['tolerance']}, with {ppr['hubs']} "
        f"hubs, from {ppr['base_nodes']:,} base nodes"
    )


if __name__ == "__main__":
    main()
