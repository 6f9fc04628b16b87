"""Measures how long and how much memory it takes to read large tables.

    python benchmarks/tables.py --nodes 1000000 --edges 10000000

Writes ``nodes.csv`` and ``edges.csv`` to a temporary folder, reads them in a fresh process, and
prints the seconds and the largest resident memory of that process.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

READ = """
import resource, sys, time
from dgt.data import load
start = time.perf_counter()
data = load(sys.argv[1])
seconds = time.perf_counter() - start
print(data.num_nodes, data.edge_index.size(1) // 2, round(seconds, 1),
      round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2))
"""


def write(folder: Path, nodes: int, edges: int) -> None:
    """Writes tables with text, numbers, dates and missing cells."""
    rng = np.random.default_rng(0)
    ids = np.char.add("user", np.arange(nodes).astype(str))
    age = np.where(rng.random(nodes) < 0.1, "", rng.integers(18, 90, nodes).astype(str))
    table = {
        "id": ids,
        "label": rng.choice(["good", "bad"], nodes),
        "age": age,
        "amount": rng.lognormal(size=nodes).round(2).astype(str),
        "city": rng.choice([f"city {i}" for i in range(500)], nodes),
        "since": (np.datetime64("2015-01-01") + rng.integers(0, 3000, nodes)).astype(str),
    }
    pa.csv.write_csv(pa.table({k: pa.array(v) for k, v in table.items()}), folder / "nodes.csv")
    ends = {side: pa.array(ids[rng.integers(0, nodes, edges)]) for side in ("src", "dst")}
    pa.csv.write_csv(pa.table(ends), folder / "edges.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), chosen.nodes, chosen.edges)
        done = subprocess.run(
            [sys.executable, "-c", READ, folder], check=True, capture_output=True, text=True
        )
    nodes, edges, seconds, gigabytes = done.stdout.split()
    print(f"{nodes} nodes, {edges} edges: {seconds} s, {gigabytes} GB")
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
