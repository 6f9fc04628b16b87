"""The fused attention compared with the readable reference: one forward and backward pass.

The default size is that of ogbn-arxiv: 169,343 nodes, three criteria, four heads with four keys, 64
channels, and sequences of 64 random nodes, the hardest case for the caches. Each form runs in its
own process; memory is the peak of a pass minus its inputs.
"""

import argparse
import json
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from dgt.ops import deformable_attention as fused
from dgt.ops.deformable_attention import reference
from dgt.ops.deformable_attention.reference import Kernel
from measure import in_own_process, measure

FORMS = {
    "reference": reference.deformable_attention,
    "fused": fused.deformable_attention,
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

    results = {form: in_own_process(one, form, arguments) for form in FORMS}
    plain, fast = results["reference"], results["fused"]
    results["ratios"] = {
        "times_faster": plain["seconds"] / fast["seconds"],
        "share_of_memory": fast["extra_bytes"] / plain["extra_bytes"],
    }
    if arguments.json:
        print(json.dumps({"settings": vars(arguments), **results}, indent=2))
    else:
        show(results)


def one(form: str, arguments: argparse.Namespace) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    N, T, M, K = arguments.nodes, arguments.criteria, arguments.heads, arguments.keys
    D = arguments.channels // M
    values = torch.randn(N, T, M, D, generator=generator)
    shape = (T, N, arguments.length)
    sequences = torch.randint(N, shape, generator=generator, dtype=torch.int32)
    # Keys spread over the sequence, as at the start of training, with a little noise.
    spread = ((torch.arange(M * K) + 0.5) / (M * K)).view(1, 1, M, K)
    query = 0.1 * torch.randn(N, 2, T, M, K, generator=generator)
    query[:, 0] += torch.logit(spread)
    upstream = torch.randn(N, T, M, D, generator=generator)
    inputs = [values.requires_grad_(), query.requires_grad_()]
    kernel = Kernel(epsilon=arguments.epsilon, normalize=False)

    def step() -> None:
        out = FORMS[form](values, sequences, query, kernel)
        torch.autograd.grad(out, inputs, upstream)

    return measure(step, arguments.rounds, arguments.threads)


def show(results: dict[str, Any]) -> None:
    table = Table("form", "seconds", "extra memory")
    for form in FORMS:
        row = results[form]
        table.add_row(form, f"{row['seconds']:.2f}", f"{row['extra_bytes'] / 1e6:,.0f} MB")
    console = Console()
    console.print(table)
    ratios = results["ratios"]
    console.print(
        f"fused: {ratios['times_faster']:.1f} times faster, with "
        f"{ratios['share_of_memory']:.2f} of the memory"
    )


if __name__ == "__main__":
    main()
