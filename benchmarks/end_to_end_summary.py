"""Summarizes the time to accuracy as a table, targets and a plot."""

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
PEER = "gcn"
# Targets: time in which DGT and dgt-plus reach the best validation accuracy of GCN, as a share of
# the time that GCN takes for it.
BARS = {"arxiv": 1.0, "twitch": 0.5, "reddit": 0.5, "1M": 1.0}
NOTE = """\
Seconds since the start, in parentheses CPU seconds of all threads. The best step has the best
validation accuracy; *: ended by the limit of steps or time. On a busy machine, only CPU seconds can
be compared."""
# One marker and one dash pattern per model, so that the plot can be read without colors.
STYLES = {
    "dgt": ("o", "-"),
    "dgt-light": ("s", "--"),
    "dgt-plus": ("P", (0, (8, 2))),
    "dgt-tuned": ("*", (0, (3, 1, 1, 1))),
    "dgt-near": ("h", (0, (12, 2, 4, 2))),
    "gcn": ("^", "-."),
    "sage": ("v", ":"),
    "sgformer": ("D", (0, (5, 1, 1, 1, 1, 1))),
    "polynormer": ("X", (0, (1, 3))),
}


def best(row: Row) -> tuple[float, float, float]:
    """Returns seconds, CPU seconds and validation accuracy of the first step with the best one."""
    return max(row["curve"], key=lambda at: at[2])


def reached(row: Row, accuracy: float) -> tuple[float, float] | None:
    """Returns the seconds and CPU seconds after which a validation accuracy is reached first."""
    return next(((at[0], at[1]) for at in row["curve"] if at[2] >= accuracy), None)


def best_until(row: Row, cpu: float) -> float | None:
    """Returns the best validation accuracy within some CPU seconds, or None if there is none."""
    return max((at[2] for at in row["curve"] if at[1] <= cpu), default=None)


def peer_of(row: Row, rows: list[Row]) -> Row | None:
    """Returns the finished case of GCN on the same graph."""
    return next((r for r in finished(rows) if (r["size"], r["model"]) == (row["size"], PEER)), None)


def finished(rows: list[Row]) -> list[Row]:
    return [row for row in rows if "failed" not in row]


def summarize(rows: list[Row]) -> list[dict[str, Any]]:
    """Returns how long our models take to reach GCN's best validation accuracy, as a share of the
    time that GCN takes for it, by seconds and by CPU seconds. None: never reached, no target, or
    GCN was ended by a limit, so that its best accuracy is not known. The target is then met, by CPU
    seconds, unless GCN ends above ``best_until``."""
    checks = []
    for row in finished(rows):
        peer = peer_of(row, rows)
        if peer is None or not row["model"].startswith("dgt"):
            continue
        theirs = best(peer)
        own = reached(row, theirs[2])
        share = None if own is None else own[0] / theirs[0]
        cpu = None if own is None else own[1] / theirs[1]
        bar = None if row["model"] == "dgt-light" else BARS.get(row["size"])
        # The best accuracy of an unfinished GCN is not known, unless it made no mistake.
        undecided = bar is None or (peer["stopped"] != "patience" and theirs[2] < 1)
        own_best = None
        if bar is not None and undecided:
            own_best = best_until(row, bar * peer["curve"][-1][1])
        checks.append(
            {
                "size": row["size"],
                "model": row["model"],
                "share": share,
                "cpu_share": cpu,
                "at_most": bar,
                "met": None if undecided else share is not None and share <= bar,
                "cpu_met": None if undecided else cpu is not None and cpu <= bar,
                "best_until": own_best,
            }
        )
    return checks


def said(row: Row) -> str:
    seconds, _, accuracy = best(row)
    return (
        f"{accuracy:.4f} after {seconds:.1f} s, {len(row['curve'])} steps in "
        f"{row['curve'][-1][0]:.1f} s, {row['peak_bytes'] / 1e9:.2f} GB"
    )


def times(seconds: float, cpu: float) -> str:
    return f"{seconds:.1f} ({cpu:.1f})"


def cells(rows: list[Row]) -> tuple[list[str], list[list[str]]]:
    header = ["graph", "model", "prepare", "best step", "end", "GCN's best val", "steps"]
    header += ["val accuracy", "test accuracy", "peak memory"]
    lines = []
    for row in rows:
        if "failed" in row:
            lines.append([row["size"], row["model"], "failed", *["–"] * (len(header) - 3)])
            continue
        seconds, cpu, accuracy = best(row)
        last, peer = row["curve"][-1], peer_of(row, rows)
        own = None if peer is None else reached(row, best(peer)[2])
        lines.append(
            [
                row["size"],
                row["model"],
                times(row["prepare_seconds"], row["prepare_cpu_seconds"]),
                times(seconds, cpu),
                times(last[0], last[1]) + ("" if row["stopped"] == "patience" else "*"),
                "–" if own is None else times(*own),
                str(len(row["curve"])),
                f"{accuracy:.4f}",
                f"{row['test_accuracy']:.4f}",
                f"{row['peak_bytes'] / 1e9:.2f} GB",
            ]
        )
    return header, lines


def sentences(checks: list[dict[str, Any]]) -> list[str]:
    found = []
    for check in checks:
        text = f"{check['model']}, {check['size']}: "
        if check["share"] is None:
            text += "does not reach GCN's best validation accuracy"
        else:
            text += "reaches GCN's best validation accuracy in "
            text += f"{check['cpu_share']:.2f} of its CPU time, {check['share']:.2f} of its time"
        if check["at_most"] is not None:
            text += f"; target: at most {check['at_most']}"
            if check["met"] is None:
                text += " (open: GCN was ended by a limit"
                if check["best_until"] is not None:
                    text += f"; met by CPU time unless it ends above {check['best_until']:.4f}"
                text += ")"
            elif not check["met"]:
                text += " (met by CPU time only)" if check["cpu_met"] else " (not met)"
            elif not check["cpu_met"]:
                text += " (not met by CPU time)"
        found.append(text)
    return found


def show(rows: list[Row], checks: list[dict[str, Any]]) -> None:
    header, lines = cells(rows)
    table = Table(*header)
    for line in lines:
        table.add_row(*line)
    console = Console()
    console.print(table)
    for sentence in sentences(checks):
        console.print(sentence)


def write(folder: Path, rows: list[Row], checks: list[dict[str, Any]]) -> None:
    """Writes ``end_to_end.md`` and, if matplotlib is installed, ``end_to_end.png``."""
    header, lines = cells(rows)
    text = ["| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *lines]]
    text += ["", NOTE, ""]
    text += [f"- {sentence}" for sentence in sentences(checks)]
    made = sorted({(row["date"], row["machine"], row["threads"]) for row in rows})
    text += ["", *(f"{date}, {machine}, {threads} threads." for date, machine, threads in made)]
    (folder / "end_to_end.md").write_text("\n".join(text) + "\n")
    try:
        plot(folder / "end_to_end.png", finished(rows))
    except ImportError:
        Console(stderr=True).print("no plot: matplotlib is not installed")


def plot(path: Path, rows: list[Row]) -> None:
    """Plots the best validation accuracy so far over CPU time, which other work on the machine
    changes less than time, a panel per graph."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot
    from matplotlib.ticker import NullFormatter

    sizes = list(dict.fromkeys(row["size"] for row in rows))
    if not sizes:
        return
    columns = min(3, len(sizes))
    height = -(-len(sizes) // columns)
    size = (4.6 * columns + 1.6, 3.6 * height)
    figure, axes = pyplot.subplots(
        height, columns, figsize=size, layout="constrained", squeeze=False
    )
    shown = {}
    for axis, size in zip(axes.flat, sizes, strict=False):
        for row in (row for row in rows if row["size"] == size):
            _, seconds, values = np.array(row["curve"]).T
            marker, dashes = STYLES[row["model"]]
            # Markers at even distances along the logarithmic axis.
            marks = np.unique(np.searchsorted(seconds, np.geomspace(seconds[0], seconds[-1], 6)))
            (shown[row["model"]],) = axis.plot(
                seconds,
                np.maximum.accumulate(values),
                color=f"C{list(STYLES).index(row['model'])}",
                marker=marker,
                linestyle=dashes,
                markevery=np.minimum(marks, len(seconds) - 1).tolist(),
                markersize=5,
            )
        axis.set_xscale("log")
        axis.xaxis.set_minor_formatter(NullFormatter())  # they would overlap
        axis.set_title(size)
        axis.set_xlabel("CPU seconds, preparation included")
        axis.set_ylabel("best validation accuracy")
        axis.grid(alpha=0.3)
    for axis in list(axes.flat)[len(sizes) :]:
        axis.remove()
    figure.legend(list(shown.values()), list(shown), loc="outside right upper", handlelength=5)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
