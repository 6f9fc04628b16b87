"""Profiles an epoch on the built-in Cora: matrix products, the fused attention, and the rest.

As in training, an epoch is a step with dropout and a forward pass for validation.
"""

import argparse
import json
import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile

from dgt.config import Config
from dgt.data import load
from dgt.nn import build
from dgt.prepare import prepare

# Substrings of the profiler's event names.
KINDS = {
    "fused attention": ("deformable_attention", "deformable_a..."),
    "matrix products": ("aten::mm", "aten::addmm", "csr_matmul", "dropout_linear"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)

    data, config = load("cora"), Config.of("dgt")
    inputs = prepare(data, config)
    model = build(config, data.num_features, 7, inputs["encoding"].size(1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, fused=True)

    def epoch() -> None:
        model.train()
        optimizer.zero_grad()
        F.cross_entropy(model(**inputs), data.y).backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            model(**inputs).argmax(dim=1)

    for _ in range(5):
        epoch()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(arguments.epochs):
            epoch()

    rows = profiler.key_averages()
    total = sum(row.self_cpu_time_total for row in rows)
    shares = dict.fromkeys([*KINDS, "rest"], 0.0)
    for row in rows:
        kind = next((k for k, names in KINDS.items() if any(n in row.key for n in names)), "rest")
        shares[kind] += row.self_cpu_time_total / total
    result = {"milliseconds_per_epoch": total / arguments.epochs / 1000, "shares": shares}
    if arguments.json:
        print(json.dumps(result, indent=2))
        return
    table = Table("part", "share of an epoch")
    for name, share in shares.items():
        table.add_row(name, f"{share:.0%}")
    Console().print(f"{result['milliseconds_per_epoch']:.1f} ms per epoch")
    Console().print(table)
    rows = sorted(rows, key=lambda row: -row.self_cpu_time_total)[:15]
    for row in rows:
        print(f"{row.self_cpu_time_total / total:6.1%}  {row.key}")


if __name__ == "__main__":
    main()
