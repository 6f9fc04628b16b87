"""Checks every operator on a GPU against the reference on the CPU, then measures training steps.

Run it on a machine with a GPU: ``python benchmarks/gpu.py``. It compares values and gradients of
all operators on the device with those on the CPU in double precision, and the attention with the
readable reference on the device. Then it measures a step (forward, backward, Adam) of DGT,
DGT-light, DGT with the reference attention, and PyG's GCN, GAT, TransformerConv and SGFormer, at
the sizes of ogbn-arxiv, twitch-gamers and Reddit. The last table has the bandwidth of the fused
attention and its share of what a copy on the card reaches.
"""

import argparse
import importlib
import json
import pkgutil
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent.parent))  # for the cases of the tests

from tests.ops.cases import CASES, DATA, Draw

import dgt.nn.attention as attention_module
import dgt.ops
import models
from dgt.config import Config
from dgt.data import load
from dgt.data.synthetic import SIZES as RECIPES
from dgt.nn import Kernel
from dgt.ops.define import OPERATORS
from dgt.ops.deformable_attention import deformable_attention, reference
from dgt.system.devices import resolve

SIZES = tuple(RECIPES)
MODELS = ("dgt", "dgt-light", "reference", "gcn", "gat", "transformer-conv", "sgformer")
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 4e-2}
COPY = 2**26  # numbers that are copied to measure the bandwidth of the card


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the nodes and edges")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    given = parser.parse_args(arguments)
    if not 0 < given.scale <= 1:
        parser.error(f"--scale: got {given.scale:g}, expected above 0 and at most 1")
    device = resolve(given.device)
    if device.type == "cpu" and given.device == "auto":
        parser.error("torch finds no GPU; try it with --device cpu --scale 0.01")
    results: dict[str, Any] = {
        "device": name_of(device),
        "torch": torch.__version__,
        "scale": given.scale,
        "operators": check_operators(device),
        "bandwidth": bandwidth(device, given.scale),
        "steps": [],
        "attention": [],
    }
    for size in given.sizes:
        recipe = RECIPES[size]
        nodes, edges = (max(400, round(n * given.scale)) for n in (recipe.nodes, recipe.edges))
        edges = min(edges, round(0.4 * nodes**2 / recipe.classes))  # as many as classes can hold
        data = load(f"synthetic:{size},nodes={nodes},edges={edges}")
        results["steps"] += [measure(m, size, data, device, given.rounds) for m in given.models]
        results["attention"].append(
            attention(size, nodes, device, given.rounds, results["bandwidth"])
        )
    if given.json:
        print(json.dumps(results, indent=2))
    else:
        show(results)
    if not all(row["met"] for row in results["operators"]):
        raise SystemExit("some operators differ from the reference")


def name_of(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else str(device)


def check_operators(device: torch.device) -> list[dict[str, Any]]:
    """Compares each operator on the device with its plain form on the CPU in double precision."""
    for module in pkgutil.iter_modules(dgt.ops.__path__):
        importlib.import_module(f"dgt.ops.{module.name}")
    rows = []
    for name in sorted(OPERATORS):
        for dtype, tolerance in TOLERANCES.items():
            errors = [error_of(name, dtype, size, device) for size in ((40, 4, 16), (33, 3, 5))]
            rows.append(
                {
                    "operator": name,
                    "type": str(dtype).removeprefix("torch."),
                    "error": max(errors),
                    "met": max(errors) <= tolerance,
                }
            )
    return rows


def error_of(
    name: str, dtype: torch.dtype, size: tuple[int, int, int], device: torch.device
) -> float:
    """Returns the largest error of values and gradients, relative to the largest entry."""
    inputs = CASES[name](Draw(0, dtype), *size)
    learned = [
        isinstance(x, Tensor) and x.is_floating_point() and place not in DATA.get(name, ())
        for place, x in enumerate(inputs)
    ]
    forward = not name.endswith(("back", "backward"))

    def run(moved: list[Any]) -> list[Tensor]:
        leaves = [x for x, wanted in zip(moved, learned, strict=True) if wanted and forward]
        for x in leaves:
            x.requires_grad_()
        out = OPERATORS[name].operator(*moved)
        outs = [out] if isinstance(out, Tensor) else list(out)
        if leaves:
            upstream = Draw(1, torch.float64)(*outs[0].shape).to(outs[0])
            outs += torch.autograd.grad(outs[0], leaves, upstream)
        return [x.detach().double().cpu() for x in outs]

    # The seed of dropout stays on the CPU.
    tensors = [isinstance(x, Tensor) and x.dim() > 0 for x in inputs]
    found = run([x.to(device, copy=True) if t else x for x, t in zip(inputs, tensors, strict=True)])
    exact = run(
        [x.double() if isinstance(x, Tensor) and x.is_floating_point() else x for x in inputs]
    )
    pairs = zip(found, exact, strict=True)
    return max(float((a - b).abs().max() / b.abs().max().clamp(min=1e-6)) for a, b in pairs)


def measure(model: str, size: str, data: Any, device: torch.device, rounds: int) -> dict[str, Any]:
    """Measures a training step of a model on half of the nodes."""
    form = models.FORMS["dgt" if model == "reference" else model][-1]
    network, inputs = models.setup(
        "dgt" if model == "reference" else model, form, data, Config.of("dgt")
    )
    row = {"size": size, "model": model, "nodes": data.num_nodes, "edges": data.num_edges // 2}
    try:
        network = network.to(device).train()
        given = {k: x.to(device) if isinstance(x, Tensor) else x for k, x in inputs.items()}
        optimizer = torch.optim.Adam(network.parameters())
        y = data.y.to(device)

        def step() -> None:
            optimizer.zero_grad()
            F.cross_entropy(network(**given), y).backward()
            optimizer.step()

        fused = attention_module.deformable_attention
        if model == "reference":
            # The reference knows no ranks to exchange values with.
            plain = reference.deformable_attention
            attention_module.deformable_attention = lambda *inputs: plain(*inputs[:4])
        try:
            return row | timed(step, device, rounds)
        finally:
            attention_module.deformable_attention = fused
    except torch.OutOfMemoryError as error:
        return row | {"failed": str(error).splitlines()[0]}


def timed(step: Callable[[], Any], device: torch.device, rounds: int) -> dict[str, float]:
    """Returns the median seconds of a step after two warm-up rounds, and its peak memory."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    for _ in range(2):
        step()
    wait()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        step()
        wait()
        seconds.append(time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated(device) if device.type == "cuda" else 0
    return {"seconds": statistics.median(seconds), "peak_bytes": peak}


def bandwidth(device: torch.device, scale: float) -> float:
    """Returns the bytes per second that a copy reads and writes."""
    source = torch.zeros(max(2**16, round(COPY * scale)), device=device)
    target = torch.empty_like(source)
    seconds = timed(lambda: target.copy_(source), device, 10)["seconds"]
    return 2 * source.numel() * source.element_size() / seconds


def attention(
    size: str, nodes: int, device: torch.device, rounds: int, card: float
) -> dict[str, Any]:
    """Measures the fused attention on random sequences, the hardest case for the caches, and counts
    the bytes of each row that it reads, of the sequences, the queries and the output."""
    T, M, K, D, L = 3, 4, 4, 16, 64
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(nodes, T, M, D, generator=generator).to(device)
    sequences = torch.randint(nodes, (T, nodes, L), generator=generator, dtype=torch.int32)
    query = torch.randn(nodes, 2, T, M, K, generator=generator)
    kernel = Kernel()
    covered = reference.position_weights(sequences[:, :256], query[:256], kernel) > 0
    rows = float(covered.any(2).sum((1, 2)).double().mean())  # per query, shared by all heads
    sequences, query = sequences.to(device), query.to(device)
    with torch.no_grad():
        found = timed(
            lambda: deformable_attention(values, sequences, query, kernel), device, rounds
        )
    moved = 4 * nodes * (rows * M * D + T * L + 2 * T * M * K + T * M * D)
    rate = moved / found["seconds"]
    return {"size": size, "seconds": found["seconds"], "bytes": moved, "share": rate / card}


def show(results: dict[str, Any]) -> None:
    console = Console()
    console.print(f"{results['device']}, torch {results['torch']}, scale {results['scale']:g}")
    table = Table("operator", "type", "largest relative error", "")
    for row in results["operators"]:
        met = "ok" if row["met"] else "DIFFERS"
        table.add_row(row["operator"], row["type"], f"{row['error']:.1e}", met)
    console.print(table)
    table = Table("size", "model", "ms per step", "peak GB")
    for row in results["steps"]:
        if "failed" in row:
            table.add_row(row["size"], row["model"], row["failed"], "")
        else:
            cells = (f"{1e3 * row['seconds']:.2f}", f"{row['peak_bytes'] / 1e9:.2f}")
            table.add_row(row["size"], row["model"], *cells)
    console.print(table)
    console.print(f"copy: {results['bandwidth'] / 1e9:.0f} GB/s")
    table = Table("size", "attention ms", "GB", "share of the bandwidth of a copy")
    for row in results["attention"]:
        cells = (f"{1e3 * row['seconds']:.2f}", f"{row['bytes'] / 1e9:.3f}", f"{row['share']:.2f}")
        table.add_row(row["size"], *cells)
    console.print(table)


if __name__ == "__main__":
    main()
