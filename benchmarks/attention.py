"""The fused attention against the readable reference: one forward and backward pass.

By default at the size of ogbn-arxiv: 169,343 nodes, three criteria, four heads of four keys, 64
channels, sequences of 64 random nodes, which is the hardest case for the caches. Each path runs in
a process of its own; memory is what a pass takes beyond its inputs.
"""

import argparse
import json
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from dgt.nn import interpolation, kernels
from dgt.nn.interpolation import Kernel
from measure import in_own_process, measure

PATHS = {
    "reference": interpolation.deformable_attention,
    "fused": kernels.deformable_attention,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=169_343)
    parser.add_argument("--criteria", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--keys", type=int, default=4)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()

    results = {path: in_own_process(one, path, arguments) for path in PATHS}
    reference, fused = results["reference"], results["fused"]
    results["ratios"] = {
        "times_faster": reference["seconds"] / fused["seconds"],
        "share_of_memory": fused["extra_bytes"] / reference["extra_bytes"],
    }
    if arguments.json:
        print(json.dumps({"settings": vars(arguments), **results}, indent=2))
    else:
        show(results)


def one(path: str, arguments: argparse.Namespace) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    N, T, M, K = arguments.nodes, arguments.criteria, arguments.heads, arguments.keys
    D = arguments.channels // M
    values = torch.randn(N, T, M, D, generator=generator)
    shape = (T, N, arguments.length)
    sequences = torch.randint(N, shape, generator=generator, dtype=torch.int32)
    # Keys spread over the sequence, as at the start of training, and moved a little at random.
    spread = ((torch.arange(M * K) + 0.5) / (M * K)).view(1, 1, M, K)
    query = 0.1 * torch.randn(N, 2, T, M, K, generator=generator)
    query[:, 0] += torch.logit(spread)
    upstream = torch.randn(N, T, M, D, generator=generator)
    inputs = [values.requires_grad_(), query.requires_grad_()]
    kernel = Kernel(epsilon=arguments.epsilon)

    def step() -> None:
        out = PATHS[path](values, sequences, query, kernel)
        torch.autograd.grad(out, inputs, upstream)

    return measure(step, arguments.rounds, arguments.threads)


def show(results: dict[str, Any]) -> None:
    table = Table("path", "seconds", "extra memory")
    for path in PATHS:
        row = results[path]
        table.add_row(path, f"{row['seconds']:.2f}", f"{row['extra_bytes'] / 1e6:,.0f} MB")
    console = Console()
    console.print(table)
    ratios = results["ratios"]
    console.print(
        f"fused: {ratios['times_faster']:.1f} times faster, with "
        f"{ratios['share_of_memory']:.2f} of the memory"
    )


if __name__ == "__main__":
    main()
