"""Figures, as PNG or PDF files."""

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dgt.errors import InputError
from dgt.explain import Explanation
from dgt.storage.files import write_bytes

SUFFIXES = (".png", ".pdf")
SAME, OTHER, UNKNOWN = "tab:red", "tab:blue", "white"
SAME_LINE, OTHER_LINE, EDGE = "tab:orange", "0.5", "0.85"


def check_path(path: Path) -> None:
    """Raises an error if :func:`save` does not support the file format."""
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: unknown format of a figure, expected a .png or .pdf file")


def save(figure: Figure, path: Path) -> None:
    """Writes a figure without a timestamp, so that equal figures give equal files."""
    check_path(path)
    kind = path.suffix.lower().removeprefix(".")
    buffer = io.BytesIO()
    date = {"CreationDate": None} if kind == "pdf" else None
    figure.savefig(buffer, format=kind, dpi=200, bbox_inches="tight", metadata=date)
    write_bytes(path, buffer.getvalue())


def attention(panels: Mapping[str, Explanation]) -> Figure:
    """Draws the most important keys of a query node, with one panel per model.

    The query is in the center, surrounded by its keys. Their distance grows with the number of
    hops, their size with the attention weight. Nodes with the label of the query are red and
    connected by orange dashed lines; other nodes are blue and connected by gray dashed lines. Thin
    lines are edges of the graph.

    Args:
        panels: Results of :meth:`dgt.NodeClassifier.explain` by title.
    """
    figure = Figure(figsize=(5.2 * len(panels), 5.6))
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, explanation) in zip(axes, panels.items(), strict=True):
        _keys(axis, title, explanation)
    marks: list[Any] = [
        Line2D([], [], marker="*", color=SAME, markeredgecolor="black", markersize=14, ls=""),
        Line2D([], [], marker="o", color=SAME, ls=""),
        Line2D([], [], marker="o", color=OTHER, ls=""),
        Line2D([], [], color=SAME_LINE, ls="--"),
        Line2D([], [], color=OTHER_LINE, ls="--"),
        Line2D([], [], color=EDGE, lw=1),
    ]
    texts = ["query", "same label", "other label", "attention", "attention", "edge"]
    figure.legend(marks, texts, loc="upper center", ncols=6, frameon=False, fontsize="small")
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.82, wspace=0.02)
    return figure


def _keys(axis: Axes, title: str, explanation: Explanation) -> None:
    own = explanation.label or explanation.prediction
    places = _rings([0 if key.id == explanation.id else key.hops for key in explanation.keys])
    at = np.vstack([np.zeros((1, 2)), places])
    for a, b in explanation.edges:
        axis.plot(*at[[a, b]].T, color=EDGE, lw=0.6, zorder=1)
    highest = max(key.weight for key in explanation.keys)
    for place, key in zip(places, explanation.keys, strict=True):
        same = key.label == own
        if key.id != explanation.id:
            line = SAME_LINE if same else OTHER_LINE
            axis.plot(*np.vstack([np.zeros(2), place]).T, color=line, ls="--", lw=1.3, zorder=2)
            axis.scatter(
                place[0],
                place[1],
                s=40 + 160 * key.weight / highest,
                color=SAME if same else UNKNOWN if key.label is None else OTHER,
                edgecolors="black",
                linewidths=0.6,
                zorder=3,
            )
    axis.scatter(0, 0, marker="*", s=420, color=SAME, edgecolors="black", zorder=4)
    same_count = sum(key.label == own for key in explanation.keys)
    itself = any(key.id == explanation.id for key in explanation.keys)
    among = " (including itself)" if itself else ""
    caption = f"{same_count} of {len(explanation.keys)} keys{among} have the same label"
    if explanation.same_label is not None:
        caption += f",\n{explanation.same_label:.0%} of all attention is on such nodes"
    axis.set_title(f"{title}\n{caption}", fontsize="medium")
    axis.set_aspect("equal")
    axis.margins(0.08)
    axis.axis("off")


def _rings(hops: list[int | None]) -> np.ndarray:
    """Returns positions around the center, one ring per distance, unreachable nodes outermost."""
    distances = [*sorted({h for h in hops if h}), None]
    places = np.zeros((len(hops), 2))
    for ring, distance in enumerate(distances, start=1):
        members = [i for i, h in enumerate(hops) if h == distance and h != 0]
        # Each ring is rotated against the inner one, so that lines do not hide nodes.
        angles = 2 * np.pi * (np.arange(len(members)) + 0.37 * ring) / max(len(members), 1)
        places[members] = ring * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return places


def curve(
    x: list[float], means: list[float], intervals: list[float], *, xlabel: str, ylabel: str
) -> Figure:
    """Draws means with confidence intervals as a function of a setting."""
    figure = Figure(figsize=(5.2, 3.4))
    axis = figure.subplots()
    axis.errorbar(x, means, yerr=intervals, marker="o", capsize=3, color=SAME)
    axis.set_xlabel(xlabel)
    axis.set_ylabel(ylabel)
    axis.grid(color="0.9")
    return figure
