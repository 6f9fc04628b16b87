"""What each hand-written operator gains over PyTorch's or PyG's own: time, memory, and bits.

Both forms of an operator run a forward and a backward pass on the same tensors. They run in turn in
one process, so that their ratio is meaningful even on a busy machine. The peak memory of each form
beyond its inputs is measured in its own process. Bits: whether results and gradients are the same
for one, two and three threads and, for the operators in ``DRAWN``, whether results are the same if
the rows are processed in two chunks. The fused attention has its own benchmark, ``attention.py``.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from dgt.ops.dropout import rows_from
from measure import in_own_process, memory, reset_peak
from operator_forms import DRAWN, FORMS, FULL, OPERATORS, QUICK, Forms, Size


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=OPERATORS, default=list(OPERATORS))
    parser.add_argument("--nodes", type=int, default=FULL.nodes)
    parser.add_argument("--channels", type=int, default=FULL.channels)
    parser.add_argument("--edges", type=int, default=FULL.edges)
    parser.add_argument("--rounds", type=int, default=FULL.rounds)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="small sizes, all in one process")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    size = QUICK if given.quick else Size(given.nodes, given.channels, given.edges, given.rounds)
    results = []
    for name in given.only:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results.append(measured(name, size, given.threads, own_process=not given.quick))
    if given.json:
        print(json.dumps({"settings": vars(given), "operators": results}, indent=2))
    else:
        show(results)


def measured(name: str, size: Size, threads: int, *, own_process: bool) -> dict[str, Any]:
    """Returns all measurements of one operator; ratios are ours to theirs."""
    run: Callable[..., Any] = in_own_process if own_process else lambda work, *rest: work(*rest)
    before = torch.get_num_threads()
    try:
        result = {"operator": name, "peer": OPERATORS[name][0]}
        result |= run(times_and_bits, name, size, threads)
        peaks = {form: run(peak, name, form, size, threads)["bytes"] for form in FORMS}
        result["bytes"] = peaks
        result["memory_ratio"] = peaks["ours"] / max(1, peaks["theirs"])
        return result
    finally:
        torch.set_num_threads(before)


def times_and_bits(name: str, size: Size, threads: int) -> dict[str, Any]:
    return times(name, size, threads) | bits(name, size)


def times(name: str, size: Size, threads: int) -> dict[str, Any]:
    """Measures the median time of each form in seconds; they run in turn."""
    torch.set_num_threads(threads)
    forms = OPERATORS[name][1](size)
    for form in FORMS:
        forms.step(form)
    seconds: dict[str, list[float]] = {form: [] for form in FORMS}
    for _ in range(size.rounds):
        for form in FORMS:
            start = time.perf_counter()
            forms.step(form)
            seconds[form].append(time.perf_counter() - start)
    medians = {form: statistics.median(each) for form, each in seconds.items()}
    return {"seconds": medians, "time_ratio": medians["ours"] / medians["theirs"]}


def peak(name: str, form: str, size: Size, threads: int) -> dict[str, int]:
    """Measures the peak memory of three passes beyond the inputs."""
    torch.set_num_threads(threads)
    OPERATORS[name][1](QUICK).step(form)  # compiles the code and starts the threads
    forms = OPERATORS[name][1](size)
    before = memory("VmRSS")
    reset_peak()
    for _ in range(3):
        forms.step(form)
    return {"bytes": max(0, memory("VmHWM") - before)}


def bits(name: str, size: Size) -> dict[str, Any]:
    """Tests whether bits depend on the number of threads and, for some operators, on chunks."""
    forms = OPERATORS[name][1](size)
    result: dict[str, Any] = {"any_threads": {}, "any_chunks": {}}
    for form in FORMS:
        each = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            torch.manual_seed(0)
            each.append(forms.step(form))
        same = (
            torch.equal(a, b) for other in each[1:] for a, b in zip(each[0], other, strict=True)
        )
        result["any_threads"][form] = all(same)
        if name in DRAWN:
            result["any_chunks"][form] = chunks(forms, form)
    return result


def chunks(forms: Forms, form: str) -> bool:
    """Returns whether two chunks of rows with the same seed give the same bits as the whole."""
    (x,), half = forms.tensors, len(forms.tensors[0]) // 3
    torch.manual_seed(0)
    whole = getattr(forms, form)(x)
    parts = []
    for first, rows in ((0, x[:half]), (half, x[half:])):
        torch.manual_seed(0)
        with rows_from(first):
            parts.append(getattr(forms, form)(rows))
    return torch.equal(whole, torch.cat(parts))


def show(results: list[dict[str, Any]]) -> None:
    table = Table("operator", "instead of", "time", "memory", "bits: any threads", "any chunks")
    for row in results:
        yes = {True: "yes", False: "no"}
        table.add_row(
            row["operator"],
            row["peer"],
            f"{row['time_ratio']:.2f}",
            f"{row['memory_ratio']:.2f}",
            *(
                " / ".join(yes[row[kind][form]] for form in row[kind])
                for kind in ("any_threads", "any_chunks")
            ),
        )
    console = Console()
    console.print(table)
    console.print("time and memory: ours as a share of theirs; bits: ours / theirs")


if __name__ == "__main__":
    main()
