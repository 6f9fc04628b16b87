"""The memory bandwidth of the fused attention (forward pass), compared with a plain gather.

A row holds the values of one node for one head. The attention reads the rows at the positions that
the windows of the head's keys cover. A plain gather reads the same rows in the same order, head by
head from a plane of that head's values, and only copies them into a buffer that stays in the cache.
The time to copy the planes counts for both. As the speed of a gather depends strongly on how it is
written, there are two: a compiled loop on the same threads as the attention, which copies words of
8 bytes, and ``torch.index_select``. The attention is compared with the faster one. All run in turn
in one process, and the shortest time of each counts. Sequences are random, the hardest case for the
caches.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import torch
from numba import njit
from rich.console import Console
from rich.table import Table
from torch import Tensor

from dgt.nn import DeformableGraphAttention
from dgt.ops import deformable_attention as fused
from dgt.ops.deformable_attention.reference import Kernel
from dgt.system import threads
from measure import in_own_process

NAMES = ("attention", "loop", "index_select")
LOOP_ROWS = 256  # rows of the buffer of the loop; a power of two
SELECT_ROWS = 8192  # rows of the buffer of index_select


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=169_343)
    parser.add_argument("--criteria", type=int, default=3)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--keys", type=int, default=4)
    parser.add_argument("--channels", type=int, default=64)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--epsilon", type=float, default=4.0)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()

    results = in_own_process(one, arguments)
    if arguments.json:
        print(json.dumps({"settings": vars(arguments), **results}, indent=2))
        return
    table = Table("", "seconds", "GB/s")
    for name in NAMES:
        row = results[name]
        table.add_row(name, f"{row['seconds']:.3f}", f"{row['gigabytes_per_second']:.2f}")
    console = Console()
    console.print(f"{results['rows']:,} rows of {results['row_bytes']} bytes")
    console.print(table)
    console.print(f"share of the bandwidth of the faster gather: {results['share']:.2f}")


def one(arguments: argparse.Namespace) -> dict[str, Any]:
    torch.set_num_threads(arguments.threads)
    generator = torch.Generator().manual_seed(0)
    N, T, M, K = arguments.nodes, arguments.criteria, arguments.heads, arguments.keys
    L, D = arguments.length, arguments.channels // M
    values = torch.randn(N, T, M, D, generator=generator)
    sequences = torch.randint(N, (T, N, L), generator=generator, dtype=torch.int32)
    # As at the start of training, the keys of each head are spread over the sequence.
    start = DeformableGraphAttention(arguments.channels, criteria=T, heads=M, keys=K).start
    query = start.expand(N, -1, -1, -1, -1).contiguous()
    offsets = torch.sigmoid(start[0, 0])  # (M, K)
    kernel = Kernel(epsilon=arguments.epsilon, normalize=False)

    position = offsets * (L - 1)  # (M, K)
    reached = (position[:, :, None] - torch.arange(L)).abs() < arguments.epsilon
    covered = reached.any(dim=1)  # (M, L)
    rows = [[sequences[t][:, covered[m]].flatten().long() for m in range(M)] for t in range(T)]
    planes = np.empty((T, M, N, D), dtype=np.float32)
    buffers = np.empty((arguments.threads, LOOP_ROWS, D), dtype=np.float32)
    selected = torch.empty(SELECT_ROWS, D)
    tasks = [(t, m, rows[t][m].int().numpy()) for t in range(T) for m in range(M)]
    count = sum(len(nodes) for heads in rows for nodes in heads)

    @torch.no_grad()
    def attention() -> None:
        fused.deformable_attention(values, sequences, query, kernel)

    def loop() -> None:
        def work(thread: int, threads: int) -> None:
            for t, m, nodes in tasks[thread::threads]:
                planes[t, m] = values.numpy()[:, t, m]
                plane, buffer = (a.view(np.float64) for a in (planes[t, m], buffers[thread]))
                gather(plane, nodes, buffer, (0,) * plane.shape[1])

        threads.run(work, len(tasks))

    def index_select() -> None:
        for t, m, _ in tasks:
            plane = values[:, t, m].contiguous()
            for nodes in rows[t][m].split(SELECT_ROWS):
                torch.index_select(plane, 0, nodes, out=selected[: len(nodes)])

    seconds = in_turn(
        {"attention": attention, "loop": loop, "index_select": index_select}, arguments.rounds
    )
    row_bytes = D * values.element_size()
    results: dict[str, Any] = {
        name: {
            "seconds": value,
            "gigabytes_per_second": count * row_bytes / value / 1e9,
        }
        for name, value in seconds.items()
    }
    share = min(seconds["loop"], seconds["index_select"]) / seconds["attention"]
    return {**results, "rows": count, "row_bytes": row_bytes, "share": share}


@njit(nogil=True, error_model="numpy")
def gather(plane, nodes, buffer, size):  # type: ignore[no-untyped-def]
    """Copies rows into a ring buffer; ``len(size)`` is a compile-time constant."""
    words = np.uint64(len(size))
    source, target = plane.ravel(), buffer.ravel()
    for i in range(len(nodes)):
        row, place = np.uint64(nodes[i]) * words, np.uint64(i & (LOOP_ROWS - 1)) * words
        for c in range(words):
            target[place + c] = source[row + c]


def in_turn(works: dict[str, Callable[[], Tensor | None]], rounds: int) -> dict[str, float]:
    """Returns the shortest time of each in seconds, after a warm-up round."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - start)
    return {name: min(values[1:]) for name, values in seconds.items()}


if __name__ == "__main__":
    main()
