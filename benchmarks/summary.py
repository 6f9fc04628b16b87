"""Summarizes the measurements of peers as slopes, ratios, tables and a plot."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
PREPARED = ("dgt", "dgt-light")  # models that read node sequences
# Targets: the largest share of the time or memory of a peer, by size.
TIME_BARS = {
    "twitch": {("dgt", "gcn"): 0.6, ("dgt-light", "gcn"): 0.25, ("dgt", "sgformer"): 0.2,
               ("dgt", "polynormer"): 0.2},
    "arxiv": {("dgt", "gcn"): 1.2, ("dgt", "sgformer"): 0.35},
}  # fmt: skip
TIME_BARS["reddit"] = TIME_BARS["twitch"]
MEMORY_BARS = {size: {("dgt", "gcn"): 1.0} for size in ("twitch", "reddit")}
SLOPE_BAR = 1.08
FLAT_BAR = 1.15
FLAT_NODES = 100_000


def fastest(rows: list[Row]) -> dict[tuple[str, str], Row]:
    """Returns the form with the fastest step for each model and size."""
    best: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row["form"] == "prepare" or "failed" in row:
            continue
        place = (row["model"], row["size"])
        if place not in best or row["seconds"] < best[place]["seconds"]:
            best[place] = row
    return best


def summarize(rows: list[Row], sweep: dict[str, int]) -> dict[str, Any]:
    """Computes slopes over the sweep of sizes, memory per node, and ratios with their targets."""
    best = fastest(rows)
    models = list(dict.fromkeys(model for model, _ in best))
    slopes, flatness = {}, {}
    for model in models:
        own = [best[model, size] for size in sweep if (model, size) in best]
        if len(own) > 1:
            nodes, seconds = (np.log([row[name] for row in own]) for name in ("nodes", "seconds"))
            slopes[model] = float(np.polyfit(nodes, seconds, 1)[0])
        large = [
            (row["peak_bytes"] - row["base_bytes"]) / row["nodes"]
            for row in own
            if row["nodes"] >= FLAT_NODES and "base_bytes" in row
        ]
        if len(large) > 1:
            flatness[model] = max(large) / min(large)
    checks = []
    if "dgt" in slopes:
        checks.append(_check("slope of dgt's time", slopes["dgt"], SLOPE_BAR))
    if "dgt" in flatness:
        checks.append(
            _check("largest to smallest memory per node of dgt", flatness["dgt"], FLAT_BAR)
        )
    for name, bars, field in (
        ("time", TIME_BARS, "seconds"),
        ("memory", MEMORY_BARS, "peak_bytes"),
    ):
        for size, pairs in bars.items():
            for (model, peer), bar in pairs.items():
                if (model, size) in best and (peer, size) in best:
                    ratio = best[model, size][field] / best[peer, size][field]
                    checks.append(_check(f"{name} of {model} to {peer}, {size}", ratio, bar))
    return {"slopes": slopes, "memory_per_node_spread": flatness, "checks": checks}


def _check(name: str, value: float, bar: float) -> dict[str, Any]:
    return {"name": name, "value": value, "at_most": bar, "met": value <= bar}


def cells(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    """Returns the header and lines of the results table: the fastest form of each model, or
    failures."""
    preparing = {(r["model"], r["size"]): r for r in rows if r["form"] == "prepare"}
    header = ["graph", "model", "form", "seconds per step", "seconds to prepare", "peak memory"]
    best, lines = fastest(rows), []
    for (model, size), row in best.items():
        prepare = "–"  # prepared before and not measured
        if (model, size) in preparing:
            prepare = f"{preparing[model, size]['seconds']:.3g}"
        elif model not in PREPARED:
            prepare = f"{row['setup_seconds']:.3g}"
        memory = f"{row['peak_bytes'] / 1e9:.2f} GB"
        lines.append([size, model, row["form"], f"{row['seconds']:.3g}", prepare, memory])
    for row in rows:
        if "failed" in row and (row["model"], row["size"]) not in best:
            lines.append([row["size"], row["model"], row["form"], "failed", "–", "–"])
    return header, lines


def _markdown(header: list[str], lines: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *lines]]


def _matrix(rows: list[Row], field: str, unit: float = 1.0) -> list[str]:
    """Returns a Markdown table with a line per model and a column per graph."""
    best = fastest(rows)
    sizes = dict.fromkeys(row["size"] for row in rows)

    def cell(model: str, size: str) -> str:
        row = best.get((model, size))
        return "–" if row is None else f"{row[field] / unit:.2f}"

    models = dict.fromkeys(model for model, _ in best)
    return _markdown(
        ["model", *sizes], [[model, *(cell(model, size) for size in sizes)] for model in models]
    )


def show(rows: list[Row], results: dict[str, Any]) -> None:
    header, lines = cells(rows)
    table = Table(*header)
    for line in lines:
        table.add_row(*line)
    console = Console()
    console.print(table)
    for model, slope in results["slopes"].items():
        spread = results["memory_per_node_spread"].get(model)
        more = "" if spread is None else f", memory per node within a factor of {spread:.2f}"
        console.print(f"{model}: time grows as N^{slope:.2f}{more}")
    for check in results["checks"]:
        sign = "met" if check["met"] else "NOT MET"
        console.print(f"{check['name']}: {check['value']:.2f}, at most {check['at_most']}: {sign}")


def write(folder: Path, rows: list[Row], results: dict[str, Any]) -> None:
    """Writes ``peers.md`` and, if matplotlib is installed, ``peers.png``."""
    text = ["Seconds per step, each model in its fastest form:", "", *_matrix(rows, "seconds")]
    text += ["", "Peak memory of the process, in GB:", "", *_matrix(rows, "peak_bytes", 1e9)]
    text += ["", "Time grows with the number of nodes N (10,000 and more, ten edges each) as:", ""]
    text += [f"- {model}: N^{slope:.2f}" for model, slope in results["slopes"].items()]
    text += ["", "Targets:", ""]
    text += [
        f"- {check['name']}: {check['value']:.2f}, at most {check['at_most']}"
        + ("" if check["met"] else " (not met)")
        for check in results["checks"]
    ]
    text += ["", "All figures:", "", *_markdown(*cells(rows))]
    made = sorted({(row["date"], row["machine"], row["threads"]) for row in rows})
    text += ["", *(f"{date}, {machine}, {threads} threads." for date, machine, threads in made)]
    (folder / "peers.md").write_text("\n".join(text) + "\n")
    try:
        import matplotlib
    except ImportError:
        Console(stderr=True).print("no plot: matplotlib is not installed")
        return
    matplotlib.use("agg")
    from matplotlib import pyplot

    best = fastest(rows)
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for model in dict.fromkeys(model for model, _ in best):
        # Only the sweep: the other sizes have more edges per node.
        own = [r for (m, _), r in best.items() if m == model and r["edges"] == 10 * r["nodes"]]
        own.sort(key=lambda row: row["nodes"])
        nodes = [row["nodes"] for row in own]
        axes[0].loglog(nodes, [row["seconds"] for row in own], marker="o", label=model)
        axes[1].loglog(nodes, [row["peak_bytes"] / 1e9 for row in own], marker="o", label=model)
    for axis, name in zip(axes, ("seconds per step", "peak memory, GB"), strict=True):
        axis.set_xlabel("nodes N")
        axis.set_ylabel(name)
        axis.grid(alpha=0.3)
    axes[0].legend(fontsize="small")
    figure.savefig(folder / "peers.png", dpi=150)
    pyplot.close(figure)
